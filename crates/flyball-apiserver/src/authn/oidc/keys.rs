//! The public keys of an issuer, and the signatures that they verify.
// RFC 7517, RFC 7518 and RFC 8037

use super::Token;
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use ring::signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde_json::Value;

/// How many keys of an issuer are read.
const MAX_KEYS: usize = 64;

/// An algorithm of signatures.
#[derive(Clone, Copy)]
pub(super) struct Algorithm {
    name: &'static str,
    verifier: Verifier,
}

#[derive(Clone, Copy)]
enum Verifier {
    Rsa(&'static RsaParameters),
    Curve {
        curve: &'static str,
        algorithm: &'static dyn VerificationAlgorithm,
    },
}

const ALGORITHMS: [Algorithm; 9] = [
    rsa("RS256", &signature::RSA_PKCS1_2048_8192_SHA256),
    rsa("RS384", &signature::RSA_PKCS1_2048_8192_SHA384),
    rsa("RS512", &signature::RSA_PKCS1_2048_8192_SHA512),
    rsa("PS256", &signature::RSA_PSS_2048_8192_SHA256),
    rsa("PS384", &signature::RSA_PSS_2048_8192_SHA384),
    rsa("PS512", &signature::RSA_PSS_2048_8192_SHA512),
    curve("ES256", "P-256", &signature::ECDSA_P256_SHA256_FIXED),
    curve("ES384", "P-384", &signature::ECDSA_P384_SHA384_FIXED),
    curve("EdDSA", "Ed25519", &signature::ED25519),
];

const fn rsa(name: &'static str, parameters: &'static RsaParameters) -> Algorithm {
    Algorithm { name, verifier: Verifier::Rsa(parameters) }
}

const fn curve(name: &'static str, curve: &'static str, algorithm: &'static dyn VerificationAlgorithm) -> Algorithm {
    Algorithm { name, verifier: Verifier::Curve { curve, algorithm } }
}

impl Algorithm {
    /// The algorithm of a name; none if it is not supported.
    pub(super) fn named(name: &str) -> Option<Algorithm> {
        ALGORITHMS.into_iter().find(|algorithm| algorithm.name == name)
    }

    /// All names, for messages.
    pub(super) fn names() -> String {
        ALGORITHMS.map(|algorithm| algorithm.name).join(", ")
    }
}

impl PartialEq for Algorithm {
    fn eq(&self, other: &Algorithm) -> bool {
        self.name == other.name
    }
}

/// The public keys of an issuer.
#[derive(Default)]
pub(super) struct KeySet(Vec<Key>);

struct Key {
    id: Option<String>,
    public: PublicKey,
}

enum PublicKey {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    Point { curve: String, bytes: Vec<u8> },
}

impl KeySet {
    /// Reads a JSON Web Key Set; keys of other kinds are left out.
    pub(super) fn read(document: &Value) -> KeySet {
        let keys = document["keys"].as_array().into_iter().flatten();
        KeySet(keys.take(MAX_KEYS).filter_map(Key::read).collect())
    }

    /// Whether one of the keys has signed a token.
    pub(super) fn verify(&self, token: &Token<'_>) -> bool {
        let named = |key: &&Key| token.key_id.is_none() || key.id.is_none() || key.id == token.key_id;
        self.0.iter().filter(named).any(|key| key.public.verify(token).is_some())
    }
}

impl Key {
    fn read(key: &Value) -> Option<Key> {
        if key.get("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let number = |field: &str| BASE64_URL_SAFE_NO_PAD.decode(key[field].as_str()?).ok();
        let curve = key["crv"].as_str().unwrap_or_default().to_owned();
        let public = match key["kty"].as_str()? {
            "RSA" => PublicKey::Rsa {
                modulus: unpadded(number("n")?),
                exponent: unpadded(number("e")?),
            },
            // An uncompressed point: 4, then both coordinates.
            "EC" => PublicKey::Point { curve, bytes: [vec![4], number("x")?, number("y")?].concat() },
            "OKP" => PublicKey::Point { curve, bytes: number("x")? },
            _ => return None,
        };
        Some(Key { id: key["kid"].as_str().map(str::to_owned), public })
    }
}

/// ring takes numbers without leading zeros.
fn unpadded(number: Vec<u8>) -> Vec<u8> {
    number.into_iter().skip_while(|byte| *byte == 0).collect()
}

impl PublicKey {
    fn verify(&self, token: &Token<'_>) -> Option<()> {
        let (signed, signature) = (token.signed.as_bytes(), &token.signature);
        match (self, token.algorithm.verifier) {
            (PublicKey::Rsa { modulus, exponent }, Verifier::Rsa(parameters)) => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(parameters, signed, signature).ok()
            }
            (PublicKey::Point { curve, bytes }, Verifier::Curve { curve: wanted, algorithm }) if curve == wanted => {
                UnparsedPublicKey::new(algorithm, bytes).verify(signed, signature).ok()
            }
            _ => None,
        }
    }
}
