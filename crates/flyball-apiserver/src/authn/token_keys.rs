//! The keys that sign and verify the tokens of service accounts (ES256), and the documents that publish them.
// pkg/serviceaccount/jwt.go, openidmetadata.go

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use flyball_host::private;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};

/// What precedes the point in the DER encoding of a public key on P-256.
const SPKI_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";

/// The keys of service account tokens: the first one signs, all verify.
pub struct TokenKeys(Vec<TokenKey>);

struct TokenKey {
    pair: EcdsaKeyPair,
    /// The hash of the public key, which tokens name.
    id: String,
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum TokenKeysError {
    /// The directory or a file in it could not be read.
    #[error("read {}", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file holds no key.
    #[error("{} holds no ECDSA private key on P-256 in PKCS #8: restore it, or remove it to create a new key (issued tokens end with it)", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
    },
}

impl TokenKeys {
    /// One new key.
    pub fn generate() -> TokenKeys {
        TokenKeys(vec![TokenKey::generate().0])
    }

    /// The keys in a directory: `service-account.key` signs, and is created if it is absent; every other
    /// `service-account-*.key` only verifies. To rotate the key, rename it and start again; remove the old one when its
    /// tokens have expired.
    pub fn open(directory: &Path) -> Result<TokenKeys, TokenKeysError> {
        private::directory(directory).map_err(|source| TokenKeysError::Write { path: directory.to_owned(), source })?;
        let signing = directory.join("service-account.key");
        let first = match read(&signing)? {
            Some(key) => key,
            None => TokenKey::create(&signing)?,
        };
        let unreadable = |source| TokenKeysError::Read { path: directory.to_owned(), source };
        let mut others = Vec::new();
        for file in std::fs::read_dir(directory).map_err(unreadable)? {
            let path = file.map_err(unreadable)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with("service-account-") && name.ends_with(".key") {
                others.push(path);
            }
        }
        others.sort();
        let mut keys = vec![first];
        for path in others {
            keys.extend(read(&path)?);
        }
        Ok(TokenKeys(keys))
    }

    /// A signed token with these claims.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        let key = &self.0[0];
        let header = json!({"alg": "ES256", "kid": key.id});
        let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let signed = format!("{}.{}", encode(&header), encode(claims));
        let signature = key.pair.sign(&SystemRandom::new(), signed.as_bytes()).expect("a key of ours signs");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// The claims of a token that one of the keys has signed.
    pub(crate) fn verify(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let header: Value = serde_json::from_slice(&decode(header)?).ok()?;
        let signature = decode(signature)?;
        if header["alg"] != "ES256" {
            return None;
        }
        let named = |key: &&TokenKey| header["kid"].as_str().is_none_or(|id| id == key.id);
        let is_valid = |key: &TokenKey| {
            let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.pair.public_key().as_ref());
            public.verify(signed.as_bytes(), &signature).is_ok()
        };
        self.0.iter().filter(named).find(|key| is_valid(key))?;
        serde_json::from_slice(&decode(claims)?).ok()
    }

    /// The public keys, as a JSON Web Key Set.
    pub(crate) fn jwks(&self) -> Value {
        let keys: Vec<Value> = self.0.iter().map(TokenKey::jwk).collect();
        json!({"keys": keys})
    }
}

impl std::fmt::Debug for TokenKeys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.0.iter().map(|key| &key.id)).finish()
    }
}

impl TokenKey {
    fn generate() -> (TokenKey, Vec<u8>) {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        let document = document.expect("the system has random numbers").as_ref().to_vec();
        (TokenKey::parse(&document).expect("a key of ours is valid"), document)
    }

    fn create(path: &Path) -> Result<TokenKey, TokenKeysError> {
        let (key, document) = TokenKey::generate();
        let text = format!("{BEGIN}\n{}\n{END}\n", STANDARD.encode(document));
        private::write(path, text.as_bytes())
            .map_err(|source| TokenKeysError::Write { path: path.to_owned(), source })?;
        Ok(key)
    }

    fn parse(document: &[u8]) -> Option<TokenKey> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document, &SystemRandom::new()).ok()?;
        let der = [&SPKI_PREFIX[..], pair.public_key().as_ref()].concat();
        let id = URL_SAFE_NO_PAD.encode(Sha256::digest(der));
        Some(TokenKey { pair, id })
    }

    fn jwk(&self) -> Value {
        // The point is uncompressed: 4, then both coordinates.
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        let encode = |number: &[u8]| URL_SAFE_NO_PAD.encode(number);
        json!({"use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256", "x": encode(x), "y": encode(y)})
    }
}

fn read(path: &Path) -> Result<Option<TokenKey>, TokenKeysError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(TokenKeysError::Read { path: path.to_owned(), source }),
    };
    let body = text.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END)).map(|(body, _)| body);
    let body: Option<String> = body.map(|body| body.split_whitespace().collect());
    let document = body.and_then(|body| STANDARD.decode(body).ok());
    match document.and_then(|document| TokenKey::parse(&document)) {
        Some(key) => Ok(Some(key)),
        None => Err(TokenKeysError::Invalid { path: path.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_valid_for_its_key_only() {
        let (keys, others) = (TokenKeys::generate(), TokenKeys::generate());
        let claims = json!({"sub": "ada"});
        let token = keys.sign(&claims);

        assert_eq!(keys.verify(&token), Some(claims));
        assert_eq!(others.verify(&token), None);
        let parts: Vec<&str> = token.split('.').collect();
        let forged = URL_SAFE_NO_PAD.encode(json!({"sub": "root"}).to_string());
        assert_eq!(keys.verify(&format!("{}.{forged}.{}", parts[0], parts[2])), None);
        let none = URL_SAFE_NO_PAD.encode(json!({"alg": "none"}).to_string());
        assert_eq!(keys.verify(&format!("{none}.{}.", parts[1])), None);
        assert_eq!(keys.verify("a.b"), None);
    }

    #[test]
    fn a_renamed_key_still_verifies_and_a_new_one_signs() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        let old = TokenKeys::open(directory.path()).unwrap().sign(&json!({}));
        assert_eq!(TokenKeys::open(directory.path()).unwrap().verify(&old), Some(json!({})));

        std::fs::rename(file("service-account.key"), file("service-account-2026.key")).unwrap();
        let keys = TokenKeys::open(directory.path()).unwrap();

        assert_eq!(keys.verify(&old), Some(json!({})));
        assert_eq!(keys.jwks()["keys"].as_array().unwrap().len(), 2);
        std::fs::remove_file(file("service-account-2026.key")).unwrap();
        assert_eq!(TokenKeys::open(directory.path()).unwrap().verify(&old), None);
        std::fs::write(file("service-account.key"), "x").unwrap();
        let error = TokenKeys::open(directory.path()).unwrap_err();
        assert!(error.to_string().contains("service-account.key holds no ECDSA private key"), "{error}");
    }
}
