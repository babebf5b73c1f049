// SPDX-License-Identifier: Apache-2.0
//! Request headers that are known to change responses, with the sources.

/// Headers that are known to change responses in one way.
#[derive(Clone, Copy, Debug)]
pub struct KnownHeaders {
    /// Their names in lower case. A `*` at the end stands for any rest of the name.
    pub names: &'static [&'static str],
    /// Their effect.
    pub meaning: &'static str,
    /// The source: a standard, an advisory, or the documentation of software that obeys them.
    pub source: &'static str,
}

const fn known(
    names: &'static [&'static str],
    meaning: &'static str,
    source: &'static str,
) -> KnownHeaders {
    KnownHeaders {
        names,
        meaning,
        source,
    }
}

/// Headers that give frameworks and proxies another method, scheme, host, path or internal step than the request's
/// URL does. With one of them a client could store the response for another URL under an innocent key. The origin
/// gets none of them with a request whose response may be shared.
pub const OVERRIDES: &[KnownHeaders] = &[
    known(
        &["forwarded*", "x-forwarded*"],
        "the scheme, host, port and prefix of the URL; not `X-Forwarded-For`, which names the client",
        "RFC 7239; PortSwigger, Practical web cache poisoning (2018)",
    ),
    known(
        &["proxy-host", "x-backend-host", "x-host", "x-proxy-*"],
        "the host",
        "PortSwigger, Param Miner",
    ),
    known(
        &[
            "x-ms-original-*",
            "x-original-*",
            "x-override-*",
            "x-replaced-path",
            "x-request-uri",
            "x-rewrite-*",
        ],
        "the path",
        "CVE-2018-14773 (Symfony, Drupal, Zend); Azure Front Door, IIS and Traefik by their documentation",
    ),
    known(
        &["x-http-*", "x-method-override"],
        "the method, or the host",
        "Rack, Symfony, ASP.NET and others by their documentation; PortSwigger, Param Miner",
    ),
    known(
        &[
            "cf-visitor",
            "cloudfront-forwarded-proto",
            "fastly-ssl",
            "front-end-https",
            "x-arr-ssl",
            "x-scheme",
            "x-url-scheme",
        ],
        "the scheme",
        "Cloudflare, CloudFront, Fastly, Microsoft ISA and IIS ARR by their documentation",
    ),
    known(
        &["$ws*", "wl-proxy-*"],
        "the scheme, the host and the client of a Java server",
        "IBM WebSphere and Oracle WebLogic, documentation of their plug-ins",
    ),
    known(
        &["max-forwards", "proxy"],
        "the proxy that answers, or that an application asks",
        "RFC 9110, 7.6.2; CVE-2016-5385 (httpoxy)",
    ),
    known(
        &[
            "x-invoke-*",
            "x-matched-path",
            "x-middleware-*",
            "x-nextjs-*",
            "x-now-route-matches",
            "x-prerender-*",
        ],
        "a step of Next.js",
        "CVE-2023-46298, CVE-2024-46982, CVE-2025-29927, CVE-2026-44572",
    ),
    known(
        &["x-react-router-*"],
        "a step of React Router",
        "CVE-2025-43864 (GHSA-f46r-rw29-r322), CVE-2025-43865 (GHSA-cpj6-fhp6-mr6j)",
    ),
    known(
        &["x-nuxt-*"],
        "where Nuxt renders a page",
        "Nuxt, `experimental.respectNoSSRHeader`",
    ),
    known(&["x-astro-*"], "the path of Astro", "GHSA-mr6q-rp88-fx84"),
    known(
        &["surrogate-capability"],
        "whether a page has tags of Edge Side Includes",
        "W3C, Edge Architecture Specification; symfony/symfony#11664",
    ),
    known(
        &["x-accel-*", "x-sendfile-type"],
        "how an application has its proxy send a file",
        "CVE-2025-61780 (Rack), CVE-2026-7381 (Plack)",
    ),
];

/// Headers by which the scripts of a page request a part or another form of the page from frameworks. The origin gets
/// them. The response is shared only if its `Vary` names the ones that the request has, because the response is of no
/// use to other clients.
pub const SELECTORS: &[KnownHeaders] = &[
    known(
        &["next-router-*", "rsc"],
        "a payload of React Server Components (Next.js)",
        "CVE-2025-49005, CVE-2026-44576; Next.js, CDN caching",
    ),
    known(
        &["x-inertia", "x-inertia-partial-*"],
        "the properties of a page (Inertia)",
        "Inertia, The protocol",
    ),
    known(&["hx-request"], "a fragment (htmx)", "htmx, Caching"),
    known(
        &["turbo-frame", "x-pjax*", "x-up-target"],
        "a fragment (Turbo, pjax, Unpoly)",
        "Turbo, pjax and Unpoly by their documentation",
    ),
];

/// Whether a header is one of [`OVERRIDES`]; `name` in lower case.
pub fn overrides(name: &str) -> bool {
    name != "x-forwarded-for" && contains(OVERRIDES, name)
}

/// Whether a header is one of [`SELECTORS`]; `name` in lower case.
pub fn selects(name: &str) -> bool {
    contains(SELECTORS, name)
}

fn contains(headers: &[KnownHeaders], name: &str) -> bool {
    let fits = |pattern: &&str| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == *pattern,
    };
    headers.iter().any(|known| known.names.iter().any(fits))
}
