// SPDX-License-Identifier: Apache-2.0
//! The variables that Kubernetes sets in each container for the Services of its namespace (`enableServiceLinks`).
//! Some of them have the name of a setting: a Service `sluice-edge` gives
//! `SLUICE_EDGE_PORT=tcp://10.0.0.1:80`.

use std::net::{IpAddr, SocketAddr};

/// The suffix of a variable with a Service's whole address.
const PORT: &str = "_PORT";
const PROTOCOLS: [&str; 3] = ["tcp://", "udp://", "sctp://"];

/// The name of the Service for which Kubernetes has set the variable `name` to `value`; `None`: the user has set
/// it.
pub fn service(name: &str, value: &str) -> Option<String> {
    let service = name.strip_suffix(PORT).filter(|name| !name.is_empty())?;
    let is_address = PROTOCOLS
        .iter()
        .filter_map(|protocol| value.strip_prefix(protocol))
        .any(|address| address.parse::<SocketAddr>().is_ok());
    is_address.then(|| service.to_ascii_lowercase().replace('_', "-"))
}

/// Whether Kubernetes has set the variable `name` to `value` for any Service, with any of the variables' suffixes.
pub fn is_link(name: &str, value: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_host = name.ends_with("_SERVICE_HOST") && value.parse::<IpAddr>().is_ok();
    let is_port = name.contains("_SERVICE_PORT") && is_number(value);
    // SERVICE_PORT_80_TCP, and this with _PROTO, _PORT or _ADDR.
    let of_number = name.rsplit_once("_PORT_").and_then(|(_, rest)| {
        let (number, rest) = rest.split_once('_')?;
        is_number(number).then_some(rest)
    });
    let is_of_number = of_number.is_some_and(|rest| {
        let protocol = rest.split('_').next().unwrap_or_default();
        ["TCP", "UDP", "SCTP"].contains(&protocol)
    });
    service(name, value).is_some() || is_host || is_port || is_of_number
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::docs;

    #[test]
    fn a_services_address_tells_which_service_it_is_of() {
        for (name, value, expected) in [
            ("EDGE_PORT", "tcp://10.0.0.1:80", Some("edge")),
            ("SLUICE_EDGE_PORT", "tcp://10.0.0.1:80", Some("sluice-edge")),
            ("EDGE_TLS_PORT", "tcp://[fd00::1]:443", Some("edge-tls")),
            ("METRICS_PORT", "udp://10.0.0.1:53", Some("metrics")),
            ("PURGE_PORT", "sctp://10.0.0.1:53", Some("purge")),
            ("EDGE_PORT", "8080", None),
            ("EDGE_PORT", "tcp://edge:80", None),
            ("EDGE_PORT", "tcp://10.0.0.1", None),
            ("EDGE_PORT", "http://10.0.0.1:80", None),
            ("ORIGIN", "tcp://10.0.0.1:80", None),
            ("_PORT", "tcp://10.0.0.1:80", None),
        ] {
            assert_eq!(service(name, value).as_deref(), expected, "{name}={value}");
        }
    }

    /// The other variables of a Service have plain values, which cannot be distinguished from a setting's value.
    #[test]
    fn no_setting_has_the_name_of_a_services_other_variables() {
        let names: Vec<_> = docs::names().flat_map(docs::variables).collect();
        assert!(names.iter().any(|name| name == "EDGE_PORT"), "{names:?}");
        for name in names {
            let is_plain = |part: &str| name.contains(part);
            assert!(
                !is_plain("_SERVICE_HOST") && !is_plain("_SERVICE_PORT"),
                "{name}"
            );
            let number = name.split("_PORT_").nth(1);
            let starts_with_digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
            assert!(!number.is_some_and(starts_with_digit), "{name}");
        }
    }
}
