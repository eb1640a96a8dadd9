//! The options for users beside the administrator: static tokens and an OpenID Connect issuer. The names are
//! kube-apiserver's.

use crate::failure::Failure;
use clap::Args;
use flyball_apiserver::{
    ServerOptions,
    authn::{
        oidc::{Oidc, OidcOptions},
        token_file,
    },
};
use std::{fs, path::PathBuf, sync::Arc};

/// Where users come from.
#[derive(Args)]
pub struct Authentication {
    /// A file of static tokens, a line each of token,user,uid,"group1,group2"
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,
    /// The URL of the OpenID Connect issuer whose ID tokens are accepted
    #[arg(long, value_name = "URL", requires_all = ["oidc_client_id", "oidc_ca_file"])]
    oidc_issuer_url: Option<String>,
    /// The audience of ID tokens
    #[arg(long, value_name = "ID", requires = "oidc_issuer_url")]
    oidc_client_id: Option<String>,
    /// The certificate authorities of the issuer's certificate
    #[arg(long, value_name = "FILE", requires = "oidc_issuer_url")]
    oidc_ca_file: Option<PathBuf>,
    /// The claim with the user's name
    #[arg(long, value_name = "CLAIM", default_value = "sub", requires = "oidc_issuer_url")]
    oidc_username_claim: String,
    /// Precedes user names [default: the issuer's URL and #, unless the claim is email; - for none]
    #[arg(
        long,
        value_name = "PREFIX",
        requires = "oidc_issuer_url",
        allow_hyphen_values = true
    )]
    oidc_username_prefix: Option<String>,
    /// The claim with the user's groups
    #[arg(long, value_name = "CLAIM", requires = "oidc_issuer_url")]
    oidc_groups_claim: Option<String>,
    /// Precedes the names of groups
    #[arg(long, value_name = "PREFIX", requires = "oidc_issuer_url")]
    oidc_groups_prefix: Option<String>,
    /// The algorithms of accepted signatures
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "RS256",
        requires = "oidc_issuer_url"
    )]
    oidc_signing_algs: Vec<String>,
    /// A claim that ID tokens must have; may be repeated
    #[arg(long, value_name = "CLAIM=VALUE", requires = "oidc_issuer_url")]
    oidc_required_claim: Vec<String>,
}

impl Authentication {
    /// Adds what the options say to those of the server.
    pub fn add_to(&self, options: &mut ServerOptions) -> Result<(), Failure> {
        if let Some(path) = &self.token_auth_file {
            let tokens = token_file::read(&read(path)?);
            let invalid = |source| Failure::TokenFile { path: path.clone(), source };
            options.static_tokens = tokens.map_err(invalid)?;
        }
        if let (Some(issuer), Some(client), Some(ca)) =
            (&self.oidc_issuer_url, &self.oidc_client_id, &self.oidc_ca_file)
        {
            let required = self.oidc_required_claim.iter().map(|claim| {
                let (name, value) = claim.split_once('=').ok_or(Failure::RequiredClaim)?;
                Ok((name.to_owned(), value.to_owned()))
            });
            let oidc = Oidc::new(OidcOptions {
                issuer_url: issuer.clone(),
                client_id: client.clone(),
                ca: read(ca)?,
                username_claim: self.oidc_username_claim.clone(),
                username_prefix: self.oidc_username_prefix.clone(),
                groups_claim: self.oidc_groups_claim.clone(),
                groups_prefix: self.oidc_groups_prefix.clone().unwrap_or_default(),
                signing_algs: self.oidc_signing_algs.clone(),
                required_claims: required.collect::<Result<_, Failure>>()?,
            })?;
            options.oidc = Some(Arc::new(oidc));
        }
        Ok(())
    }
}

fn read(path: &PathBuf) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|source| Failure::Read { path: path.clone(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use flyball_apiserver::authn::identity::Authority;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        authentication: Authentication,
    }

    fn options(words: &[&str]) -> Result<ServerOptions, String> {
        let words = std::iter::once("flyball").chain(words.iter().copied());
        let flags = Flags::try_parse_from(words).map_err(|error| error.to_string())?;
        let mut options = ServerOptions::default();
        flags.authentication.add_to(&mut options).map_err(|failure| crate::sentence(&failure))?;
        Ok(options)
    }

    #[test]
    fn flags_bring_tokens_and_an_issuer() {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = place.path().join(name);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let tokens = file("tokens", "secret,ada,1,\"a,b\"\n");
        let broken = file("broken", "secret,ada\n");
        let ca = file("ca", Authority::generate().unwrap().certificate());

        assert_eq!(options(&["--token-auth-file", &tokens]).unwrap().static_tokens.len(), 1);
        let error = options(&["--token-auth-file", &broken]).err().unwrap();
        assert!(error.contains("line 1: expected at least 3 columns"), "{error}");

        let issuer = [
            "--oidc-issuer-url",
            "https://example.com",
            "--oidc-client-id",
            "k",
            "--oidc-ca-file",
            &ca,
        ];
        assert!(options(&issuer).unwrap().oidc.is_some());
        let error = options(&[&issuer[..], &["--oidc-required-claim", "x"]].concat()).err().unwrap();
        assert_eq!(error, "invalid --oidc-required-claim: expected CLAIM=VALUE");
        let error = options(&issuer[..2]).err().unwrap();
        assert!(error.contains("--oidc-client-id"), "{error}");
        assert!(options(&[]).unwrap().oidc.is_none());
    }
}
