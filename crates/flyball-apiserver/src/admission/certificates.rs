//! The plugins of CertificateSigningRequests: CertificateSigning and CertificateSubjectRestriction; and the requester of a
//! new request. Nobody approves requests here, so there is no CertificateApproval.
// plugin/pkg/admission/certificates

use crate::admission::chain::Plugin;
use crate::admission::{Attributes, Operation};
use crate::authn::identity::subject;
use crate::authn::user::SYSTEM_MASTERS;
use crate::authz::{Access, ResourceAccess, Target};
use crate::endpoints::Subresource;
use crate::kinds::certificates::CERTIFICATE_SIGNING_REQUEST;
use crate::registry::object;
use crate::status::Result;
use base64::prelude::{BASE64_STANDARD, Engine};
use futures::future::{BoxFuture, FutureExt, ready};
use rustls_pki_types::CertificateSigningRequestDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Value, json};

const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Only users who may `sign` for the signer write the certificate and the conditions.
pub(super) struct CertificateSigning;

impl Plugin for CertificateSigning {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        let is_status = attributes.operation == Operation::Update && attributes.subresource == Subresource::Status;
        is_status && attributes.request.kind.is(&CERTIFICATE_SIGNING_REQUEST)
    }

    fn validate<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        async move {
            let Some(old) = attributes.old else { return Ok(()) };
            let same = |field: &str| {
                let (old, new) = (&old["status"][field], &attributes.object["status"][field]);
                let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
                old == new || (is_empty(old) && is_empty(new))
            };
            let signer = old["spec"]["signerName"].as_str().unwrap_or_default();
            if (same("certificate") && same("conditions")) || is_allowed(attributes, "sign", signer).await? {
                return Ok(());
            }
            let why = format!("user not permitted to sign requests with signerName {signer:?}");
            Err(attributes.forbidden(why))
        }
        .boxed()
    }
}

/// A new request says who made it, whatever its author says.
// pkg/registry/certificates/certificates/strategy.go, PrepareForCreate
pub(super) struct CertificateRequester;

impl Plugin for CertificateRequester {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        attributes.creates(&CERTIFICATE_SIGNING_REQUEST)
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        let user = &attributes.request.user;
        let spec = object::field_mut(&mut attributes.object, "spec");
        for field in ["username", "uid", "groups", "extra"] {
            spec.remove(field);
        }
        spec.insert("username".into(), user.name.clone().into());
        if !user.uid.is_empty() {
            spec.insert("uid".into(), user.uid.clone().into());
        }
        if !user.groups.is_empty() {
            spec.insert("groups".into(), user.groups.clone().into());
        }
        if !user.extra.is_empty() {
            spec.insert("extra".into(), json!(user.extra));
        }
        ready(Ok(())).boxed()
    }
}

/// Nobody gets a certificate of the group that may do everything.
pub(super) struct CertificateSubjectRestriction;

impl Plugin for CertificateSubjectRestriction {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        attributes.creates(&CERTIFICATE_SIGNING_REQUEST) && attributes.object["spec"]["signerName"] == CLIENT_SIGNER
    }

    fn validate<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> BoxFuture<'a, Result<()>> {
        let checked = match organizations(&attributes.object["spec"]["request"]) {
            None => Err(attributes.forbidden("failed to parse CSR: the request is not a PKCS#10 request in PEM")),
            Some(groups) if groups.iter().any(|group| group == SYSTEM_MASTERS) => {
                let why = format!("use of {CLIENT_SIGNER} signer with {SYSTEM_MASTERS} group is not allowed");
                Err(attributes.forbidden(why))
            }
            Some(_) => Ok(()),
        };
        ready(checked).boxed()
    }
}

/// The organizations in the subject of a request in PEM in base64.
fn organizations(request: &Value) -> Option<Vec<String>> {
    let pem = BASE64_STANDARD.decode(request.as_str()?).ok()?;
    let der = CertificateSigningRequestDer::from_pem_slice(&pem).ok()?;
    subject::organizations_of_request(&der)
}

/// Whether the user may do that for a signer, or for all signers of its domain.
// pkg/certauthorization/certauthorization.go, IsAuthorizedForSignerName
async fn is_allowed(attributes: &Attributes<'_>, verb: &str, signer: &str) -> Result<bool> {
    let domain = format!("{}/*", signer.split('/').next().unwrap_or_default());
    for name in [signer, &domain] {
        let (namespace, subresource) = ("", "");
        let (group, resource) = (CERTIFICATE_SIGNING_REQUEST.group, "signers");
        let target = Target::Resource(ResourceAccess { namespace, group, resource, subresource, name });
        let access = Access { user: &attributes.request.user, verb, target };
        if attributes.request.server.authorize(&access).await?.allowed {
            return Ok(true);
        }
    }
    Ok(false)
}
