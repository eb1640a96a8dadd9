//! Flyball beside the real thing: a control plane built from the Go module registry, and the comparisons made with it.

pub mod answers;
pub mod bootstrap;
pub mod cel;
pub mod corpus;
pub mod count;
pub mod differences;
pub mod garden;
pub mod group;
pub mod leadership;
pub mod ours;
pub mod published;
pub mod reference;
pub mod report;
pub mod requests;
pub mod restart;
pub mod scenario;
pub mod sequences;
pub mod soak;
pub mod table;
pub mod watches;
