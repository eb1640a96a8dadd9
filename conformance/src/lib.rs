//! Flyball beside the real thing: a control plane built from the Go module registry, and the comparisons made with it.
