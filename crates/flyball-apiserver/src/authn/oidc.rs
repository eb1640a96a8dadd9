//! ID tokens of an OpenID Connect issuer. Its keys are fetched when they are first needed, and again for a token of an
//! unknown key.
// apiserver/plugin/pkg/authenticator/token/oidc/oidc.go

mod fetch;
mod keys;

use crate::authn::user::User;
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use fetch::{FetchError, Fetcher};
use jiff::{SignedDuration, Timestamp};
use keys::{Algorithm, KeySet};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How often keys are fetched at most.
const MIN_FETCH_INTERVAL: Duration = Duration::from_secs(10);
/// How much earlier than `nbf` a token is accepted.
const LEEWAY: SignedDuration = SignedDuration::from_mins(5);

/// How ID tokens are verified, and which users they stand for; the names are those of kube-apiserver's flags.
#[derive(Clone, Debug)]
pub struct OidcOptions {
    /// The URL of the issuer, which is also in its tokens.
    pub issuer_url: String,
    /// The audience of the tokens.
    pub client_id: String,
    /// The certificate authorities of the issuer's certificate, in PEM.
    pub ca: String,
    /// The claim with the user's name.
    pub username_claim: String,
    /// Precedes user names; if absent, the issuer does, unless the claim is `email`. `-` stands for no prefix.
    pub username_prefix: Option<String>,
    /// The claim with the user's groups.
    pub groups_claim: Option<String>,
    /// Precedes the names of groups.
    pub groups_prefix: String,
    /// The algorithms of accepted signatures.
    pub signing_algs: Vec<String>,
    /// Claims that tokens must have, with their values.
    pub required_claims: BTreeMap<String, String>,
}

impl Default for OidcOptions {
    fn default() -> OidcOptions {
        OidcOptions {
            issuer_url: String::new(),
            client_id: String::new(),
            ca: String::new(),
            username_claim: "sub".into(),
            username_prefix: None,
            groups_claim: None,
            groups_prefix: String::new(),
            signing_algs: vec!["RS256".into()],
            required_claims: BTreeMap::new(),
        }
    }
}

/// Why ID tokens cannot be verified as the options say.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// The issuer is no HTTPS URL.
    #[error("invalid issuer URL {0:?}: expected https://HOST[:PORT][/PATH]")]
    Issuer(String),
    /// There is no client ID.
    #[error("the client ID is required beside the issuer URL")]
    ClientId,
    /// An algorithm is not supported.
    #[error("unsupported signing algorithm {0:?}: expected one of {supported}", supported = Algorithm::names())]
    Algorithm(String),
    /// The certificate authorities cannot be read.
    #[error("the certificate authorities of the issuer hold no certificate in PEM")]
    Ca,
}

/// Verifies the ID tokens of one issuer.
pub struct Oidc {
    options: OidcOptions,
    algorithms: Vec<Algorithm>,
    fetcher: Fetcher,
    keys: RwLock<Arc<KeySet>>,
    /// When the keys were last fetched; held while they are.
    fetched: Mutex<Option<Instant>>,
}

/// A token whose signature is to be verified.
struct Token<'a> {
    signed: &'a str,
    signature: Vec<u8>,
    algorithm: Algorithm,
    key_id: Option<String>,
    claims: Value,
}

impl Oidc {
    /// A verifier; the issuer is not asked yet.
    pub fn new(options: OidcOptions) -> Result<Oidc, OidcError> {
        let issuer = fetch::https(&options.issuer_url).filter(|uri| uri.query().is_none());
        issuer.ok_or_else(|| OidcError::Issuer(options.issuer_url.clone()))?;
        if options.client_id.is_empty() {
            return Err(OidcError::ClientId);
        }
        let algorithm = |name: &String| Algorithm::named(name).ok_or_else(|| OidcError::Algorithm(name.clone()));
        let algorithms = options.signing_algs.iter().map(algorithm).collect::<Result<_, _>>()?;
        let fetcher = Fetcher::new(&options.ca).ok_or(OidcError::Ca)?;
        Ok(Oidc {
            options,
            algorithms,
            fetcher,
            keys: RwLock::default(),
            fetched: Mutex::default(),
        })
    }

    /// The user of a token; none if it is of another issuer, an error if it is not valid.
    pub(crate) async fn authenticate(&self, token: &str, now: Timestamp) -> Option<Result<User, String>> {
        let claims = claims(token).filter(|claims| claims["iss"] == *self.options.issuer_url)?;
        Some(self.verify(token, claims, now).await.map_err(|why| format!("oidc: {why}")))
    }

    async fn verify(&self, token: &str, claims: Value, now: Timestamp) -> Result<User, String> {
        let failed = |why: String| format!("verify token: {why}");
        let token = self.parse(token, claims).map_err(failed)?;
        self.check_signature(&token).await.map_err(failed)?;
        self.check_claims(&token.claims, now).map_err(failed)?;
        self.user(&token.claims)
    }

    fn parse<'a>(&self, token: &'a str, claims: Value) -> Result<Token<'a>, String> {
        let malformed = || "malformed jwt".to_owned();
        let (signed, signature) = token.rsplit_once('.').ok_or_else(malformed)?;
        let header = signed.split('.').next().and_then(json).ok_or_else(malformed)?;
        let name = header["alg"].as_str().unwrap_or_default();
        let algorithm = Algorithm::named(name).filter(|algorithm| self.algorithms.contains(algorithm));
        let algorithm = algorithm.ok_or_else(|| format!("unexpected signature algorithm {name:?}"))?;
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).map_err(|_| malformed())?;
        let key_id = header["kid"].as_str().map(str::to_owned);
        Ok(Token { signed, signature, algorithm, key_id, claims })
    }

    /// Verifies with the known keys; with those that are fetched now if none of them is the token's.
    async fn check_signature(&self, token: &Token<'_>) -> Result<(), String> {
        if self.keys().verify(token) {
            return Ok(());
        }
        let mut fetched = self.fetched.lock().await;
        // Another request may have fetched the keys meanwhile.
        let is_recent = fetched.is_some_and(|at| at.elapsed() < MIN_FETCH_INTERVAL);
        if !is_recent && !self.keys().verify(token) {
            *fetched = Some(Instant::now());
            let keys = self.fetch_keys().await.map_err(|error| format!("fetching keys {error}"))?;
            *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
        }
        match self.keys().verify(token) {
            true => Ok(()),
            false => Err("failed to verify id token signature".to_owned()),
        }
    }

    fn keys(&self) -> Arc<KeySet> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn fetch_keys(&self) -> Result<KeySet, FetchError> {
        let issuer = &self.options.issuer_url;
        let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let document = self.fetcher.json(&url).await?;
        if document["issuer"] != **issuer {
            return Err(FetchError::Issuer {
                expected: issuer.clone(),
                found: document["issuer"].to_string(),
            });
        }
        let keys = document["jwks_uri"].as_str().unwrap_or_default();
        Ok(KeySet::read(&self.fetcher.json(keys).await?))
    }

    fn check_claims(&self, claims: &Value, now: Timestamp) -> Result<(), String> {
        let audiences = strings(&claims["aud"]).unwrap_or_default();
        if !audiences.contains(&self.options.client_id) {
            let expected = &self.options.client_id;
            return Err(format!("expected audience {expected:?} got {audiences:?}"));
        }
        let time = |claim: &str| claims[claim].as_f64().and_then(|seconds| Timestamp::from_second(seconds as i64).ok());
        if time("exp").is_none_or(|end| now > end) {
            return Err("token is expired".into());
        }
        match time("nbf").filter(|start| now + LEEWAY < *start) {
            Some(start) => Err(format!("current time {now} before the nbf (not before) time: {start}")),
            None => Ok(()),
        }
    }

    /// The user that verified claims stand for.
    fn user(&self, claims: &Value) -> Result<User, String> {
        let OidcOptions { issuer_url, username_claim, .. } = &self.options;
        let name = claims[username_claim].as_str();
        let name = name.ok_or_else(|| format!("parse username claims {username_claim:?}: claim not present"))?;
        if username_claim == "email" && claims.get("email_verified").is_some_and(|verified| *verified != true) {
            return Err("email not verified".into());
        }
        let prefix = match self.options.username_prefix.as_deref() {
            Some("-") => String::new(),
            Some(prefix) => prefix.to_owned(),
            None if username_claim == "email" => String::new(),
            None => format!("{issuer_url}#"),
        };
        let mut user = User::new(format!("{prefix}{name}"), self.groups(claims)?);
        if let Some(id) = claims["jti"].as_str() {
            let key = "authentication.kubernetes.io/credential-id";
            user.extra.insert(key.into(), vec![format!("JTI={id}")]);
        }
        for (claim, value) in &self.options.required_claims {
            match claims.get(claim) {
                None => return Err(format!("required claim {claim} not present in ID token")),
                Some(found) if found != value => {
                    return Err(format!("required claim {claim} value does not match. Got = {found}, want = {value}"));
                }
                Some(_) => {}
            }
        }
        Ok(user)
    }

    fn groups(&self, claims: &Value) -> Result<Vec<String>, String> {
        let Some(claim) = self.options.groups_claim.as_deref() else {
            return Ok(Vec::new());
        };
        let Some(groups) = claims.get(claim) else {
            return Ok(Vec::new());
        };
        let groups = strings(groups).ok_or_else(|| format!("parse groups claim {claim:?}: expected texts"))?;
        let prefix = &self.options.groups_prefix;
        Ok(groups.into_iter().map(|group| format!("{prefix}{group}")).collect())
    }
}

impl std::fmt::Debug for Oidc {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Oidc").field("options", &self.options).finish_non_exhaustive()
    }
}

/// The claims of a token, not verified.
fn claims(token: &str) -> Option<Value> {
    let mut parts = token.split('.');
    let (_header, claims, _signature) = (parts.next()?, parts.next()?, parts.next()?);
    parts.next().is_none().then(|| json(claims)).flatten()
}

fn json(part: &str) -> Option<Value> {
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

/// One text, or several.
fn strings(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(all) => all.iter().map(|one| one.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}
