// SPDX-License-Identifier: Apache-2.0
//! Cross-origin resource sharing: the answers and headers that EDGE makes without the origin.

use sluice_core::http::caching::cache_name::CacheName;
use sluice_core::http::caching::cache_status::detailed;
use sluice_core::http::syntax::field_value::JoinedValue;
use sluice_core::policy::CorsPolicy;
use sluice_core::website::cors::{
    CORS_PREFIX, VARY_BY_ORIGIN, preflight_fields, response_fields, varies,
};

use crate::reply::CACHE_STATUS;
use sluice_host::headers::Headers;
use sluice_host::{self as host, Host, Map};

/// Cross-origin resource sharing of one request.
#[derive(Debug)]
pub struct Cors {
    /// Value of the request's `Origin`. A policy names no value that is not text.
    origin: Option<String>,
}

impl Cors {
    /// The sharing of a request with these headers.
    pub fn of(headers: &Headers) -> Self {
        let origin = headers.get("origin").and_then(|origin| origin.text().ok());
        Self {
            origin: origin.map(str::to_owned),
        }
    }

    /// Sets the CORS headers of the response, and removes those of the origin.
    pub fn mark_response(&self, host: &dyn Host, policy: &CorsPolicy) -> host::Result<()> {
        let headers = host.headers(Map::Response)?;
        for (name, _) in headers
            .iter()
            .filter(|(name, _)| name.starts_with(CORS_PREFIX))
        {
            host.remove_header(Map::Response, name)?;
        }
        for (name, value) in response_fields(policy, self.origin.as_deref()) {
            host.set_header(Map::Response, name, value)?;
        }
        let told = headers.joined("vary").is_some_and(names_origin);
        if varies(policy) && !told {
            host.add_header(Map::Response, "vary", VARY_BY_ORIGIN)?;
        }
        Ok(())
    }

    /// Answers a preflight.
    pub fn answer_preflight(
        &self,
        host: &dyn Host,
        name: &CacheName,
        policy: &CorsPolicy,
    ) -> host::Result<()> {
        let mut fields = preflight_fields(policy, self.origin.as_deref());
        if varies(policy) {
            fields.push(("vary", VARY_BY_ORIGIN.to_owned()));
        }
        fields.push((CACHE_STATUS, detailed(name, "preflight")));
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        host.respond(204, "sluice_preflight", &fields, "")
    }
}

fn names_origin(vary: JoinedValue<'_>) -> bool {
    let names = |member: &str| member == "*" || member.eq_ignore_ascii_case("origin");
    vary.value().members().flatten().any(names)
}
