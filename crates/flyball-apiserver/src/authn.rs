//! Who sends a request: users, the certificates that prove them, and the kubeconfig that clients take both from.

pub mod identity;
pub mod kubeconfig;
pub mod oidc;
pub mod token;
pub mod token_file;
pub mod token_keys;
pub mod user;
pub mod x509;

use crate::server::ApiServer;
use http::header::AUTHORIZATION;
use http::{Extensions, HeaderMap};
use user::{SYSTEM_AUTHENTICATED, SYSTEM_UNAUTHENTICATED, User};
use x509::ClientCertificate;

/// The user that a caller in the server's own process names; an extension of its requests.
#[derive(Clone)]
pub(crate) struct InProcessUser(pub User);

/// Why credentials are not valid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuthenticationError {
    /// The client certificate proves no user.
    #[error("the client certificate is not valid: {0}")]
    Certificate(#[from] x509::CertificateError),
    /// The bearer token proves no user.
    #[error("the bearer token is not valid: {0}")]
    Token(String),
}

/// The user who sends a request: as the process says, else by client certificate, else by bearer token, else anonymous.
// apiserver/pkg/authentication/request/union/union.go
pub(crate) async fn authenticate(
    server: &ApiServer,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<User, AuthenticationError> {
    if let Some(InProcessUser(user)) = extensions.get() {
        return Ok(with_authenticated_group(user.clone()));
    }
    if let Some(certificate) = extensions.get::<ClientCertificate>() {
        return Ok(with_authenticated_group(certificate.verify(server.clock().now())?));
    }
    let Some(token) = bearer_token(headers) else {
        return Ok(User::anonymous());
    };
    let authenticated = token::authenticate(server, token, &[token::ISSUER.to_owned()]).await;
    let authenticated = authenticated.map_err(AuthenticationError::Token)?;
    Ok(with_authenticated_group(authenticated.user))
}

// apiserver/pkg/authentication/group/authenticated_group_adder.go
pub(crate) fn with_authenticated_group(mut user: User) -> User {
    if !user.is_in(SYSTEM_AUTHENTICATED) && !user.is_in(SYSTEM_UNAUTHENTICATED) {
        user.groups.push(SYSTEM_AUTHENTICATED.into());
    }
    user
}

// apiserver/pkg/authentication/request/bearertoken/bearertoken.go
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let (scheme, rest) = header.split_once(' ')?;
    let token = rest.split(' ').next().unwrap_or_default();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
