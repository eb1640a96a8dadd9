//! What a Cache has to be before it is stored.

use crate::api::{Cache, Exposure};
use flyball::{Result, Review, Violations};
use kube::ResourceExt;
use std::sync::Arc;

/// Checks what the schema cannot say.
pub async fn validate(cache: Arc<Cache>, review: Review<Cache>) -> Result<()> {
    let mut violations = Violations::default();
    let spec = &cache.spec;
    if spec.warm_up.is_some() && spec.exposure == Exposure::None {
        violations.forbidden("spec.warmUp", "a Cache without a Service cannot be warmed up");
    }
    if let Some(old) = review.old()
        && spec.version < old.spec.version
    {
        violations.invalid("spec.version", &*spec.version, format!("is older than {}", old.spec.version));
    }
    if spec.replicas == 1 {
        review.warn("spec.replicas: a Cache with one replica is empty after an eviction");
    }
    violations.check()
}

/// Spreads the warm-ups that are asked for by `daily` over the hours of the night.
pub async fn default(mut cache: Cache, _: Review<Cache>) -> Result<Cache> {
    if cache.spec.warm_up.as_deref() == Some("daily") {
        let spread: u32 = cache.name_any().bytes().map(u32::from).sum();
        cache.spec.warm_up = Some(format!("{} {} * * *", spread % 60, spread % 5));
    }
    Ok(cache)
}
