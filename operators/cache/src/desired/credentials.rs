//! What a client of a Cache needs.

use super::address;
use crate::api::Cache;
use k8s_openapi::api::core::v1::Secret;

/// The address of a Cache, for a CacheUser.
pub fn credentials(cache: &Cache) -> Secret {
    Secret {
        string_data: Some([("address".into(), address(cache))].into()),
        ..Default::default()
    }
}
