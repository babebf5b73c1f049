// SPDX-License-Identifier: Apache-2.0
//! HTTP/3 on the port of the TLS listener, and how clients learn about it.

use super::environment::Environment;

/// HTTP/3 for clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Http3 {
    /// No listener, and no word about it.
    #[default]
    Off,
    /// A QUIC listener on the port of the TLS listener.
    On {
        /// The UDP port to which clients send.
        port: u16,
    },
    /// No listener. Clients forget the one that they know.
    Clear,
}

impl Http3 {
    /// Reads `SLUICE_HTTP3` and `SLUICE_HTTP3_PORT`. `tls_port` is the port of the TLS listener, if the edge has one.
    /// `None`: there is a problem.
    pub fn read(
        env: &mut Environment<'_>,
        tls_port: Option<u16>,
        has_proxy_protocol: bool,
    ) -> Option<Self> {
        const MODE: &str = "SLUICE_HTTP3";
        const PORT: &str = "SLUICE_HTTP3_PORT";
        let modes = [
            ("off", Self::Off),
            ("on", Self::On { port: 0 }),
            ("clear", Self::Clear),
        ];
        let mode = env.choice(MODE, &modes)?;
        let published = match env.set(PORT).is_some() {
            true => Some(env.port(PORT)?),
            false => None,
        };
        if published.is_some() && !mode.listens() {
            env.refuse(PORT, None, "must be unset, or SLUICE_HTTP3 be on");
            return None;
        }
        if mode == Self::Off {
            return Some(Self::Off);
        }
        let Some(tls_port) = tls_port else {
            let accepted =
                "needs a certificate: SLUICE_TLS_CERT and SLUICE_TLS_KEY, or tls in a site";
            env.refuse(MODE, None, accepted);
            return None;
        };
        if mode == Self::Clear {
            return Some(Self::Clear);
        }
        if has_proxy_protocol {
            let accepted =
                "must be off, as SLUICE_PROXY_PROTOCOL is set: QUIC has no header of that protocol";
            env.refuse(MODE, None, accepted);
            return None;
        }
        let port = published.unwrap_or(tls_port);
        Some(Self::On { port })
    }

    /// Whether there is a QUIC listener.
    pub const fn listens(self) -> bool {
        matches!(self, Self::On { .. })
    }

    /// The value of `Alt-Svc` (RFC 7838) in responses over TLS.
    pub fn alt_svc(self) -> Option<String> {
        match self {
            Self::Off => None,
            Self::On { port } => Some(format!("h3=\":{port}\"; ma=86400")),
            Self::Clear => Some("clear".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Http3;
    use crate::settings::Settings;

    fn read(variables: &[(&str, &str)]) -> Http3 {
        let tls = [
            ("SLUICE_ORIGIN", "s3://site"),
            ("SLUICE_TLS_CERT", "/dev/null"),
            ("SLUICE_TLS_KEY", "/dev/null"),
        ];
        let lookup = |name: &str| {
            let mut set = tls.iter().chain(variables);
            set.find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).into())
        };
        Settings::from_lookup(&lookup).unwrap().http3
    }

    #[test]
    fn clients_are_told_the_published_port_or_to_forget_it() {
        for (variables, expected) in [
            (&[] as &[_], None),
            (&[("SLUICE_HTTP3", "off")], None),
            (&[("SLUICE_HTTP3", "on")], Some("h3=\":8443\"; ma=86400")),
            (
                &[("SLUICE_HTTP3", "on"), ("SLUICE_HTTP3_PORT", "443")],
                Some("h3=\":443\"; ma=86400"),
            ),
            (&[("SLUICE_HTTP3", "clear")], Some("clear")),
        ] {
            let http3 = read(variables);
            assert_eq!(http3.alt_svc().as_deref(), expected, "{variables:?}");
            let is_on = variables.first() == Some(&("SLUICE_HTTP3", "on"));
            assert_eq!(http3.listens(), is_on, "{variables:?}");
        }
    }
}
