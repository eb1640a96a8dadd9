//! Ranges of sizes and costs; sums and products stop at the largest number.

/// The least and the greatest size of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeEstimate {
    /// The least.
    pub min: u64,
    /// The greatest.
    pub max: u64,
}

/// The least and the greatest cost of an expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostEstimate {
    /// The least.
    pub min: u64,
    /// The greatest.
    pub max: u64,
}

fn scale(number: u64, factor: f64) -> u64 {
    let product = (number as f64 * factor).ceil();
    if product >= 18_446_744_073_709_551_616.0 {
        u64::MAX
    } else {
        product as u64
    }
}

impl SizeEstimate {
    /// Any size.
    pub const UNKNOWN: SizeEstimate = SizeEstimate { min: 0, max: u64::MAX };

    /// Exactly this size.
    pub const fn fixed(size: u64) -> SizeEstimate {
        SizeEstimate { min: size, max: size }
    }

    pub(super) fn add(self, other: SizeEstimate) -> SizeEstimate {
        SizeEstimate {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    pub(super) fn times(self, other: SizeEstimate) -> SizeEstimate {
        SizeEstimate {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    pub(super) fn union(self, other: SizeEstimate) -> SizeEstimate {
        SizeEstimate { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// The cost of looking at each unit, at so much for one.
    pub(super) fn at(self, factor: f64) -> CostEstimate {
        CostEstimate { min: scale(self.min, factor), max: scale(self.max, factor) }
    }

    pub(super) fn times_cost(self, cost: CostEstimate) -> CostEstimate {
        CostEstimate {
            min: self.min.saturating_mul(cost.min),
            max: self.max.saturating_mul(cost.max),
        }
    }
}

impl CostEstimate {
    pub(super) const fn fixed(cost: u64) -> CostEstimate {
        CostEstimate { min: cost, max: cost }
    }

    pub(super) fn add(self, other: CostEstimate) -> CostEstimate {
        CostEstimate {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    pub(super) fn times(self, other: CostEstimate) -> CostEstimate {
        CostEstimate {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    pub(super) fn at(self, factor: f64) -> CostEstimate {
        CostEstimate { min: scale(self.min, factor), max: scale(self.max, factor) }
    }

    pub(super) fn union(self, other: CostEstimate) -> CostEstimate {
        CostEstimate { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}
