// SPDX-License-Identifier: Apache-2.0
//! The question to Envoy's verifier of tokens, a listener inside of Envoy, and the meaning of its answer.

use std::time::Duration;

use sluice_core::access::token::PresentedToken;
use sluice_core::internal_headers::{TOKEN_ISSUER_HEADER, TOKEN_REFUSAL_HEADER};
use sluice_core::policy::JwtPolicy;

use super::answer::Verdict;
use crate::request::headers::Header;
use sluice_host::headers::Headers;

/// Time limit of a verification, which may have to wait for the keys of the issuer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(3);
/// The beginning of the details of a refusal by Envoy's filter.
const REFUSED: &[u8] = b"jwt_authn_access_denied{";
/// The beginning of the details if the keys of the issuer are missing.
const WITHOUT_KEYS: &[u8] = b"jwt_authn_access_denied{Jwks_";

/// The details if the issuer has no key of the token's name.
const UNKNOWN_KEY: &[u8] =
    b"jwt_authn_access_denied{Jwks_doesn't_have_key_to_match_kid_or_alg_from_Jwt}";

/// The headers of the question to the verifier with this name. `None`: the request has no token.
pub(super) fn question(name: &str, token: &PresentedToken) -> Option<Vec<Header>> {
    let PresentedToken::Present(token) = token else {
        return None;
    };
    let fields = [
        (":method", b"GET".to_vec()),
        (":scheme", b"http".to_vec()),
        (":authority", name.as_bytes().to_vec()),
        (":path", format!("/{name}").into_bytes()),
        ("authorization", [b"Bearer ", token.as_slice()].concat()),
    ];
    let fields = fields.into_iter();
    Some(
        fields
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

/// The meaning of an answer with these headers. Only the issuer, which Envoy's filter has read out of a token that it
/// has verified, admits the request. So a listener without that filter admits no request.
pub(super) fn verdict(policy: &JwtPolicy, answer: &Headers) -> Verdict {
    let only = |wanted: &str| {
        let mut lines = answer.iter().filter(|(name, _)| *name == wanted);
        match (lines.next(), lines.next()) {
            (Some((_, value)), None) => Some(value),
            _ => None,
        }
    };
    let refusal = only(TOKEN_REFUSAL_HEADER);
    match answer.status() {
        Some(200) if only(TOKEN_ISSUER_HEADER) == Some(policy.issuer.as_bytes()) => {
            Verdict::Admitted
        }
        Some(401 | 403) => match refusal {
            Some(UNKNOWN_KEY) => Verdict::Refused,
            Some(details) if details.starts_with(WITHOUT_KEYS) => Verdict::Unknown,
            Some(details) if details.starts_with(REFUSED) => Verdict::Refused,
            _ => Verdict::Unknown,
        },
        _ => Verdict::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use sluice_core::policy::Policy;
    use sluice_host::headers::serialize;

    use super::*;

    fn verdict_of(status: &str, more: &[(&str, &str)]) -> Verdict {
        let policy = br#"{"origin": {"kind": "http"}, "access": {"any_of": [{"jwt": {"issuer": "https://id.test",
            "audiences": ["docs"], "jwks": {"installed": "00"}}}]}}"#;
        let policy = Policy::parse(policy).unwrap();
        let policy = policy.access.as_ref().and_then(|access| access.jwt());
        let fields = [(":status", status)];
        let fields = fields.iter().chain(more);
        let fields = fields.map(|(name, value)| (*name, value.as_bytes()));
        verdict(policy.unwrap(), &Headers::new(serialize(fields)))
    }

    #[test]
    fn only_the_issuer_of_a_verified_token_admits() {
        let issuer = (TOKEN_ISSUER_HEADER, "https://id.test");
        assert_eq!(verdict_of("200", &[issuer]), Verdict::Admitted);
        for more in [
            vec![],
            vec![(TOKEN_ISSUER_HEADER, "")],
            vec![(TOKEN_ISSUER_HEADER, "-")],
            vec![(TOKEN_ISSUER_HEADER, "https://id.test/")],
            vec![issuer, issuer],
        ] {
            assert_eq!(verdict_of("200", &more), Verdict::Unknown, "{more:?}");
        }
        for status in ["204", "302", "404", "500", "503", ""] {
            assert_eq!(verdict_of(status, &[issuer]), Verdict::Unknown, "{status}");
        }
    }

    #[test]
    fn only_a_refusal_of_the_token_refuses() {
        let refusal = |details| verdict_of("401", &[(TOKEN_REFUSAL_HEADER, details)]);
        let expired = "jwt_authn_access_denied{Jwt_is_expired}";
        assert_eq!(refusal(expired), Verdict::Refused);
        let unknown = "jwt_authn_access_denied{Jwks_doesn't_have_key_to_match_kid_or_alg_from_Jwt}";
        assert_eq!(refusal(unknown), Verdict::Refused);
        assert_eq!(
            verdict_of("403", &[(TOKEN_REFUSAL_HEADER, expired)]),
            Verdict::Refused
        );
        for details in [
            "",
            "rbac_access_denied",
            "jwt_authn_access_denied{Jwks_remote_fetch_is_failed}",
            "jwt_authn_access_denied{Jwks_doesn't_have_any_valid_public_key}",
        ] {
            assert_eq!(refusal(details), Verdict::Unknown, "{details}");
        }
        assert_eq!(verdict_of("401", &[]), Verdict::Unknown);
    }
}
