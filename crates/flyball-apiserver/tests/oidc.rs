//! ID tokens of an OpenID Connect issuer that serves its keys on loopback, over TLS.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD as BASE64, Engine};
use flyball_apiserver::authn::identity::Authority;
use flyball_apiserver::authn::oidc::{Oidc, OidcOptions};
use flyball_apiserver::{ApiServer, ServerOptions};
use flyball_store::Store;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A private key of the issuer.
enum Key {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(EcdsaKeyPair),
    Edwards(Ed25519KeyPair),
}

impl Key {
    fn rsa() -> Key {
        let text: String = include_str!("data/issuer.pkcs8.base64").split_whitespace().collect();
        Key::Rsa(Box::new(RsaKeyPair::from_pkcs8(&BASE64_STANDARD.decode(text).unwrap()).unwrap()))
    }

    fn ecdsa() -> Key {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Key::Ecdsa(EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap())
    }

    fn edwards() -> Key {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Key::Edwards(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap())
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Key::Rsa(_) => "RS256",
            Key::Ecdsa(_) => "ES256",
            Key::Edwards(_) => "EdDSA",
        }
    }

    fn jwk(&self, id: &str) -> Value {
        match self {
            Key::Rsa(key) => {
                let public: ring::rsa::PublicKeyComponents<Vec<u8>> = key.public().into();
                json!({"kty": "RSA", "kid": id, "n": BASE64.encode(public.n), "e": BASE64.encode(public.e)})
            }
            Key::Ecdsa(key) => {
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "kid": id, "x": BASE64.encode(x), "y": BASE64.encode(y)})
            }
            Key::Edwards(key) => {
                json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": BASE64.encode(key.public_key().as_ref())})
            }
        }
    }

    fn sign(&self, id: &str, claims: &Value) -> String {
        let header = json!({"alg": self.algorithm(), "kid": id});
        let signed = format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()));
        let (random, bytes) = (SystemRandom::new(), signed.as_bytes());
        let signature = match self {
            Key::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, bytes, &mut signature).unwrap();
                signature
            }
            Key::Ecdsa(key) => key.sign(&random, bytes).unwrap().as_ref().to_vec(),
            Key::Edwards(key) => key.sign(bytes).as_ref().to_vec(),
        };
        format!("{signed}.{}", BASE64.encode(signature))
    }
}

/// An issuer that listens on loopback.
struct Issuer {
    url: String,
    authority: Authority,
    /// The keys that it serves.
    keys: Arc<Mutex<Vec<Value>>>,
    /// How often its keys were fetched.
    fetches: Arc<AtomicUsize>,
}

impl Issuer {
    async fn start(keys: Vec<Value>) -> Issuer {
        let authority = Authority::generate().unwrap();
        let credential = authority.server(&["localhost".into()]).unwrap();
        let chain = vec![CertificateDer::from_pem_slice(credential.certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(credential.key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = config.with_no_client_auth().with_single_cert(chain, key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}/tenant", listener.local_addr().unwrap().port());
        let issuer = Issuer {
            url,
            authority,
            keys: Arc::new(Mutex::new(keys)),
            fetches: Arc::default(),
        };
        let (url, keys, fetches) = (issuer.url.clone(), issuer.keys.clone(), issuer.fetches.clone());
        let answer = move |request: Request<hyper::body::Incoming>| {
            let document = match request.uri().path() {
                "/tenant/.well-known/openid-configuration" => {
                    json!({"issuer": url, "jwks_uri": format!("{url}/keys")})
                }
                "/tenant/keys" => {
                    fetches.fetch_add(1, Ordering::SeqCst);
                    json!({"keys": *keys.lock().unwrap()})
                }
                _ => Value::Null,
            };
            let answer = Response::new(Full::new(bytes::Bytes::from(document.to_string())));
            async move { Ok::<_, std::convert::Infallible>(answer) }
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, answer) = (acceptor.clone(), answer.clone());
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let service = hyper::service::service_fn(answer);
                        drop(
                            hyper::server::conn::http1::Builder::new()
                                .serve_connection(TokioIo::new(stream), service)
                                .await,
                        );
                    }
                });
            }
        });
        issuer
    }

    fn options(&self) -> OidcOptions {
        OidcOptions {
            issuer_url: self.url.clone(),
            client_id: "kubernetes".into(),
            ca: self.authority.certificate().to_owned(),
            signing_algs: vec!["RS256".into(), "ES256".into(), "EdDSA".into()],
            ..OidcOptions::default()
        }
    }

    fn claims(&self) -> Value {
        let now = flyball_apiserver::clock::Clock::start().now().as_second();
        json!({"iss": self.url, "sub": "ada", "aud": "kubernetes", "exp": now + 600, "iat": now})
    }
}

async fn server(options: OidcOptions) -> ApiServer {
    let oidc = Some(Arc::new(Oidc::new(options).unwrap()));
    ServerOptions { oidc, ..ServerOptions::default() }.start(Store::memory()).await.unwrap()
}

/// Who the server takes the owner of a token for: the name and the groups, or the code of the refusal.
async fn who(server: &ApiServer, token: &str) -> Result<(String, Vec<String>), u16> {
    let request = Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .body(Full::new(bytes::Bytes::from_static(b"{}")));
    let response = server.respond(request.unwrap()).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    if code != 201 {
        return Err(code);
    }
    let user = &body["status"]["userInfo"];
    let groups = user["groups"].as_array().unwrap().iter().map(|group| group.as_str().unwrap().to_owned());
    Ok((user["username"].as_str().unwrap().to_owned(), groups.collect()))
}

#[tokio::test]
async fn tokens_of_every_kind_of_key_name_their_user() {
    let keys = [Key::rsa(), Key::ecdsa(), Key::edwards()];
    let public = keys.iter().enumerate().map(|(n, key)| key.jwk(&n.to_string())).collect();
    let issuer = Issuer::start(public).await;
    let server = server(issuer.options()).await;

    for (n, key) in keys.iter().enumerate() {
        let token = key.sign(&n.to_string(), &issuer.claims());
        let (name, groups) = who(&server, &token).await.unwrap();
        assert_eq!(name, format!("{}#ada", issuer.url), "{}", key.algorithm());
        assert_eq!(groups, ["system:authenticated"]);
    }
    assert_eq!(issuer.fetches.load(Ordering::SeqCst), 1, "the keys are fetched once");
}

#[tokio::test]
async fn claims_and_prefixes_make_names_and_groups() {
    let key = Key::ecdsa();
    let issuer = Issuer::start(vec![key.jwk("k")]).await;
    let options = OidcOptions {
        username_claim: "email".into(),
        groups_claim: Some("groups".into()),
        groups_prefix: "oidc:".into(),
        required_claims: [("tenant".to_owned(), "one".to_owned())].into(),
        ..issuer.options()
    };
    let server = server(options).await;
    let token = |more: Value| {
        let mut claims = issuer.claims();
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        key.sign("k", &claims)
    };

    let good = token(json!({"email": "ada@example.com", "groups": ["a", "b"], "tenant": "one"}));
    let (name, groups) = who(&server, &good).await.unwrap();
    assert_eq!(
        (name.as_str(), groups.join(" ")),
        ("ada@example.com", "oidc:a oidc:b system:authenticated".into())
    );
    for (claims, what) in [
        (json!({"email": "ada@example.com"}), "the required claim is absent"),
        (json!({"email": "ada@example.com", "tenant": "two"}), "the required claim is another"),
        (
            json!({"email": "a@b.c", "tenant": "one", "email_verified": false}),
            "the address is not verified",
        ),
        (json!({"tenant": "one"}), "there is no name"),
        (json!({"email": "a@b.c", "tenant": "one", "aud": ["other"]}), "the audience is another"),
        (json!({"email": "a@b.c", "tenant": "one", "exp": 1}), "the token has expired"),
        (
            json!({"email": "a@b.c", "tenant": "one", "iss": "https://example.com"}),
            "the issuer is another",
        ),
    ] {
        assert_eq!(who(&server, &token(claims)).await, Err(401), "{what}");
    }
}

#[tokio::test]
async fn a_token_of_another_key_or_algorithm_is_refused() {
    let (key, other) = (Key::ecdsa(), Key::ecdsa());
    let issuer = Issuer::start(vec![key.jwk("k")]).await;
    let server_of = |algorithms: &[&str]| {
        let signing_algs = algorithms.iter().map(|name| (*name).to_owned()).collect();
        server(OidcOptions { signing_algs, ..issuer.options() })
    };
    let strict = server_of(&["RS256"]).await;
    assert_eq!(
        who(&strict, &key.sign("k", &issuer.claims())).await,
        Err(401),
        "the algorithm is not permitted"
    );

    let server = server_of(&["ES256"]).await;
    assert_eq!(who(&server, &other.sign("k", &issuer.claims())).await, Err(401));
    let unsigned = format!("{}.{}.", BASE64.encode(r#"{"alg":"none"}"#), BASE64.encode(issuer.claims().to_string()));
    assert_eq!(who(&server, &unsigned).await, Err(401));
    for _ in 0..20 {
        assert_eq!(who(&server, &other.sign("unknown", &issuer.claims())).await, Err(401));
    }
    assert_eq!(
        issuer.fetches.load(Ordering::SeqCst),
        1,
        "unknown keys do not make the server ask again and again"
    );
}

#[tokio::test]
async fn keys_are_fetched_again_after_a_rotation() {
    let (old, new) = (Key::ecdsa(), Key::ecdsa());
    let issuer = Issuer::start(vec![old.jwk("old")]).await;
    let server = server(issuer.options()).await;
    assert!(who(&server, &old.sign("old", &issuer.claims())).await.is_ok());
    *issuer.keys.lock().unwrap() = vec![new.jwk("new")];

    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(11)).await;
    tokio::time::resume();

    assert!(who(&server, &new.sign("new", &issuer.claims())).await.is_ok());
    assert_eq!(who(&server, &old.sign("old", &issuer.claims())).await, Err(401), "the old key is gone");
}

#[tokio::test]
async fn an_issuer_without_the_right_certificate_is_not_believed() {
    let key = Key::ecdsa();
    let issuer = Issuer::start(vec![key.jwk("k")]).await;
    let ca = Authority::generate().unwrap().certificate().to_owned();
    let server = server(OidcOptions { ca, ..issuer.options() }).await;

    assert_eq!(who(&server, &key.sign("k", &issuer.claims())).await, Err(401));
    assert_eq!(issuer.fetches.load(Ordering::SeqCst), 0);
}

#[test]
fn options_that_cannot_be_are_refused_by_name() {
    let ca = Authority::generate().unwrap().certificate().to_owned();
    let good = || OidcOptions {
        issuer_url: "https://example.com".into(),
        client_id: "kubernetes".into(),
        ca: ca.clone(),
        ..OidcOptions::default()
    };
    let refusal = |options: OidcOptions| Oidc::new(options).unwrap_err().to_string();
    assert!(Oidc::new(good()).is_ok());
    let http = OidcOptions { issuer_url: "http://example.com".into(), ..good() };
    assert!(refusal(http).starts_with("invalid issuer URL \"http://example.com\": expected https://"));
    let algorithm = OidcOptions { signing_algs: vec!["HS256".into()], ..good() };
    assert!(refusal(algorithm).starts_with("unsupported signing algorithm \"HS256\": expected one of RS256, "));
    assert!(refusal(OidcOptions { client_id: String::new(), ..good() }).starts_with("the client ID is required"));
    assert!(refusal(OidcOptions { ca: "x".into(), ..good() }).contains("hold no certificate in PEM"));
}
