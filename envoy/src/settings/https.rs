// SPDX-License-Identifier: Apache-2.0
//! HTTPS for the clients of the one site in front of `SLUICE_ORIGIN`.

use super::environment::Environment;
use super::listeners::Clients;
use crate::sites::Hsts;

/// HTTPS for the clients of one site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Https {
    /// Whether requests over cleartext are redirected to HTTPS.
    pub redirects: bool,
    /// The value of `Strict-Transport-Security` in responses over HTTPS.
    pub hsts: Option<Hsts>,
}

impl Https {
    /// Reads `SLUICE_REDIRECT_TO_HTTPS` and `SLUICE_HSTS`. Both need HTTPS, from the edge or from a trusted proxy.
    pub fn read(env: &mut Environment<'_>, clients: Option<&Clients>) -> Option<Self> {
        const REDIRECT: &str = "SLUICE_REDIRECT_TO_HTTPS";
        const HSTS: &str = "SLUICE_HSTS";
        let redirects = env.switch(REDIRECT);
        let hsts = env.parse(HSTS, Hsts::ACCEPTED, Hsts::parse);
        let has_certificate = env.set("SLUICE_TLS_CERT").is_some();
        let behind_proxy = clients.is_none_or(|clients| clients.trusted_hops > 0);
        if !has_certificate && !behind_proxy {
            let wanted = [(REDIRECT, redirects == Some(true)), (HSTS, hsts.is_some())];
            for (name, _) in wanted.into_iter().filter(|(_, is_wanted)| *is_wanted) {
                let accepted = "needs SLUICE_TLS_CERT and SLUICE_TLS_KEY, or SLUICE_TRUSTED_HOPS, where a proxy \
                                speaks HTTPS";
                env.refuse(name, None, accepted);
            }
        }
        Some(Self {
            redirects: redirects?,
            hsts,
        })
    }
}
