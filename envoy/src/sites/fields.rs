// SPDX-License-Identifier: Apache-2.0
//! The fields of the file of sites. This one definition yields the check of the file, its JSON Schema, and the
//! tables of `docs/sites.md`.

use std::time::Duration;

use serde_json::{Map, Value, json};
use sluice_core::policy::forms::duration;
use sluice_core::policy::is_site_name;

use super::failover::{EXPECTED_DAY, EXPECTED_PATIENCE, EXPECTED_TTL, day, patience, ttl};
use super::file::{Field, Form, Text};
use super::host::{is_host_pattern, is_path};
use super::servers::{EXPECTED_HEALTH_CHECK, EXPECTED_SERVER, is_health_check};
use crate::origin::{BucketName, Endpoint, is_region};

/// The policy's JSON Schema.
const POLICY_SCHEMA: &str = include_str!("../../../filter/core/policy.schema.json");

/// The sections of a policy that all sites share.
pub const EDGE_SECTIONS: [&str; 4] = ["store", "hot", "purge", "limits"];

/// The file of sites.
pub const FILE: Form = Form::Mapping(&[
    Field {
        name: "edge",
        about: "The sections of the policy that all sites share.",
        required: false,
        form: Form::Policy("edge"),
    },
    Field {
        name: "sites",
        about: "The sites.",
        required: true,
        form: Form::List(&Form::Mapping(SITE)),
    },
]);

/// A site.
const SITE: &[Field] = &[
    Field {
        name: "name",
        about: "The name of the site in keys, metrics, logs and traces. Each name must be unique. After a change of \
                the name, the site's stored objects cannot be found any more.",
        required: true,
        form: Form::Text(Text {
            expected: "1 to 63 lower-case letters, digits and hyphens, no hyphen at either end",
            pattern: "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
            accepts: is_site_name,
            hidden: false,
        }),
    },
    Field {
        name: "hosts",
        about: "The hosts whose requests the site serves, without ports: names, and *.example.com for all names with \
                one label in front of example.com. Default: all hosts that no other site names.",
        required: false,
        form: Form::List(&Form::Text(Text {
            expected: "a host such as www.example.com or *.example.com, without a port",
            pattern: "^(\\*\\.)?[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$",
            accepts: is_host_pattern,
            hidden: false,
        })),
    },
    Field {
        name: "path",
        about: "The prefix of the paths that the site serves on its hosts, in whole segments. Default: all paths that \
                no other site of the host serves.",
        required: false,
        form: Form::Text(Text {
            expected: "the beginning of paths, such as /static: segments of letters, digits and -._~, each after a \
                       slash, none of them . or ..",
            pattern: "^(/[A-Za-z0-9._~-]+)+$",
            accepts: is_path,
            hidden: false,
        }),
    },
    Field {
        name: "origin",
        about: "The origin of the site: s3://BUCKET[/PREFIX], http://HOST[:PORT] or https://HOST[:PORT], or a list of \
                such HTTP servers, all with http:// or all with https://.",
        required: true,
        form: Form::Either(&[ORIGIN, Form::List(&SERVER)]),
    },
    Field {
        name: "health_check",
        about: "The path that each server of an HTTP origin answers with 200 while it is healthy. Default: no such requests.",
        required: false,
        form: Form::Text(Text {
            expected: EXPECTED_HEALTH_CHECK,
            pattern: "^/[!-~]*$",
            accepts: is_health_check,
            hidden: false,
        }),
    },
    Field {
        name: "endpoint",
        about: "The server of the bucket, http://HOST[:PORT] or https://HOST[:PORT]. Default: AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, else AWS.",
        required: false,
        form: ENDPOINT,
    },
    Field {
        name: "region",
        about: "The region for which requests to the bucket are signed. Default: AWS_REGION.",
        required: false,
        form: REGION,
    },
    Field {
        name: "addressing",
        about: "The place of the bucket's name: path (HOST/BUCKET/KEY) or virtual_host (BUCKET.HOST/KEY). Default: path \
                at an endpoint, virtual_host on AWS unless the bucket's name has dots.",
        required: false,
        form: ADDRESSING,
    },
    Field {
        name: "credentials",
        about: "The credentials for the bucket: the names of variables, a profile of a file, or chain, the standard \
                chain of web identity, container and instance roles. Default: chain.",
        required: false,
        form: CREDENTIALS,
    },
    Field {
        name: "failover",
        about: "A second origin, which gets the requests that the first one fails. Default: none.",
        required: false,
        form: Form::Mapping(FAILOVER),
    },
    Field {
        name: "hedge_after",
        about: "The time without a response after which a GET is sent to the origin a second time. The first response \
                counts. Default: never.",
        required: false,
        form: duration_form(EXPECTED_PATIENCE, |text| patience(text).is_some()),
    },
    Field {
        name: "keepalive",
        about: "How long an idle connection to the origin is kept for the next request. It must be shorter than the \
                origin's own time. Default: 4s for an HTTP origin, 15s for a bucket.",
        required: false,
        form: duration_form(EXPECTED_KEEPALIVE, |text| keepalive(text).is_some()),
    },
    Field {
        name: "policy",
        about: "The policy: the name of one that comes with the edge (bucket, http, microcache, spa, downloads, \
                versioned-assets), a file, or its sections themselves. Default: bucket or http, by the kind of origin.",
        required: false,
        form: Form::Either(&[
            Form::Text(Text {
                expected: "the name of a policy that comes with the edge, a file, or sections of the policy",
                pattern: "^.+$",
                accepts: |text| !text.is_empty(),
                hidden: false,
            }),
            Form::Policy("policy"),
        ]),
    },
    Field {
        name: "access",
        about: "The clients that the site answers. All others get 403. Default: all clients.",
        required: false,
        form: Form::Policy("access"),
    },
    Field {
        name: "tls",
        about: "The certificate that clients get for the site's hosts. Default: none.",
        required: false,
        form: Form::Mapping(CERTIFICATE),
    },
    Field {
        name: "redirect_to_https",
        about: "Whether requests over cleartext are redirected to HTTPS. Default: false.",
        required: false,
        form: Form::Flag,
    },
    Field {
        name: "hsts",
        about: "How long clients must use only HTTPS (Strict-Transport-Security, RFC 6797). Default: no such header.",
        required: false,
        form: Form::Either(&[MAX_AGE, Form::Mapping(HSTS)]),
    },
    Field {
        name: "share",
        about: "The weight of the site when sites compete for the cache and the hot tier. Default: 1.",
        required: false,
        form: Form::Whole(1, 1_000),
    },
    Field {
        name: "purge_token",
        about: "The name of the variable with the token for purges of this site only, at least 16 characters. It must \
                differ from the tokens of other sites and from SLUICE_PURGE_TOKEN. Default: the site can be purged with the \
                edge's SLUICE_PURGE_TOKEN only.",
        required: false,
        form: VARIABLE,
    },
];

const ORIGIN: Form = Form::Text(Text {
    expected: "s3://BUCKET[/PREFIX] with a valid bucket name and a prefix without empty, . or .. segments, \
                   http://HOST[:PORT] or https://HOST[:PORT]",
    pattern: "^(s3|https?)://[^/]+",
    accepts: |text| match text.strip_prefix("s3://") {
        Some(bucket) => BucketName::parse(bucket).is_some(),
        None => Endpoint::parse(text).is_some(),
    },
    hidden: false,
});

const SERVER: Form = Form::Text(Text {
    expected: EXPECTED_SERVER,
    pattern: "^https?://[^/]+/?$",
    accepts: |text| Endpoint::parse(text).is_some(),
    hidden: false,
});

const ENDPOINT: Form = Form::Text(Text {
    expected: "http://HOST[:PORT] or https://HOST[:PORT]",
    pattern: "^https?://[^/]+/?$",
    accepts: |text| Endpoint::parse(text).is_some(),
    hidden: false,
});

const REGION: Form = Form::Text(Text {
    expected: "a region such as us-east-1",
    pattern: "^[A-Za-z0-9_-]{1,32}$",
    accepts: is_region,
    hidden: false,
});

const ADDRESSING: Form = Form::Text(Text {
    expected: "path or virtual_host",
    pattern: "^(path|virtual_host)$",
    accepts: |text| matches!(text, "path" | "virtual_host"),
    hidden: false,
});

const CREDENTIALS: Form = Form::Either(&[CHAIN, Form::Mapping(VARIABLES), Form::Mapping(PROFILE)]);

const CHAIN: Form = Form::Text(Text {
    expected: "chain",
    pattern: "^chain$",
    accepts: |text| text == "chain",
    hidden: true,
});

/// NB: in upper case, which a secret rarely is. So a message may repeat the name, and never shows a secret that was
/// written there by mistake.
const VARIABLE: Form = Form::Text(Text {
    expected: "the name of an environment variable: upper-case letters, digits and underscores",
    pattern: "^[A-Z_][A-Z0-9_]*$",
    accepts: |text| {
        let allowed = |byte: u8| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_');
        !text.is_empty()
            && text.bytes().all(allowed)
            && !text.starts_with(|first: char| first.is_ascii_digit())
    },
    hidden: true,
});

const VARIABLES: &[Field] = &[
    Field {
        name: "access_key_id",
        about: "The name of the variable with the access key's ID.",
        required: true,
        form: VARIABLE,
    },
    Field {
        name: "secret_access_key",
        about: "The name of the variable with the secret access key.",
        required: true,
        form: VARIABLE,
    },
    Field {
        name: "session_token",
        about: "The name of the variable with the session token of temporary credentials. Default: none.",
        required: false,
        form: VARIABLE,
    },
];

const PROFILE: &[Field] = &[
    Field {
        name: "file",
        about: "A file in the format of AWS's credentials file. It may change while the edge serves.",
        required: true,
        form: PATH,
    },
    Field {
        name: "profile",
        about: "The profile of that file. Default: default.",
        required: false,
        form: Form::Text(Text {
            expected: "the name of a profile",
            pattern: "^[^\\[\\]\\s]+$",
            accepts: |text| {
                !text.is_empty()
                    && !text
                        .contains(|byte: char| byte.is_whitespace() || matches!(byte, '[' | ']'))
            },
            hidden: false,
        }),
    },
];

const FAILOVER: &[Field] = &[
    Field {
        name: "origin",
        about: "The second origin: s3://BUCKET[/PREFIX], http://HOST[:PORT] or https://HOST[:PORT]. If the first \
                origin is not a bucket, the second one must not be a bucket either.",
        required: true,
        form: ORIGIN,
    },
    Field {
        name: "endpoint",
        about: "The server of the second bucket, http://HOST[:PORT] or https://HOST[:PORT]. Default: AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, else AWS.",
        required: false,
        form: ENDPOINT,
    },
    Field {
        name: "region",
        about: "The region for which requests to the second bucket are signed. Default: AWS_REGION.",
        required: false,
        form: REGION,
    },
    Field {
        name: "addressing",
        about: "The place of the second bucket's name: path or virtual_host. Default: as for the site's addressing.",
        required: false,
        form: ADDRESSING,
    },
    Field {
        name: "credentials",
        about: "The credentials for the second bucket, as the site's credentials. Default: the site's credentials.",
        required: false,
        form: CREDENTIALS,
    },
    Field {
        name: "ttl",
        about: "The longest time for which a response of the second origin is fresh. Default: 60s.",
        required: false,
        form: duration_form(EXPECTED_TTL, |text| ttl(text).is_some()),
    },
    Field {
        name: "connect_timeout",
        about: "The time for a connection to the first origin, after which the second one is asked. Default: 1s.",
        required: false,
        form: duration_form(EXPECTED_PATIENCE, |text| patience(text).is_some()),
    },
    Field {
        name: "after_silence",
        about: "The time without a response after which the second origin is asked. It also bounds the second origin's \
                time. Default: 5s.",
        required: false,
        form: duration_form(EXPECTED_PATIENCE, |text| patience(text).is_some()),
    },
    Field {
        name: "pass_client_credentials",
        about: "Whether the second origin also gets requests with a client's Authorization or Cookie. Default: false.",
        required: false,
        form: Form::Flag,
    },
    Field {
        name: "on_missing",
        about: "Whether the second origin is also asked for objects that the first bucket lacks, while objects are \
                moved to it. Default: false.",
        required: false,
        form: Form::Flag,
    },
    Field {
        name: "until",
        about: "The day from which sluice check reminds that on_missing is still true. Default: none.",
        required: false,
        form: Form::Text(Text {
            expected: EXPECTED_DAY,
            pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
            accepts: |text| day(text).is_some(),
            hidden: false,
        }),
    },
];

/// The form of a duration.
const fn duration_form(expected: &'static str, accepts: fn(&str) -> bool) -> Form {
    Form::Text(Text {
        expected,
        pattern: DURATION,
        accepts,
        hidden: false,
    })
}

/// The pattern of a duration.
const DURATION: &str = r"^\b([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$";

const CERTIFICATE: &[Field] = &[
    Field {
        name: "certificate",
        about: "The certificate chain, a PEM file, the site's own certificate first.",
        required: true,
        form: PATH,
    },
    Field {
        name: "key",
        about: "The certificate's private key, a PEM file.",
        required: true,
        form: PATH,
    },
];

const PATH: Form = Form::Text(Text {
    expected: "the path of a file",
    pattern: "^.+$",
    accepts: |text| !text.is_empty(),
    hidden: false,
});

const HSTS: &[Field] = &[
    Field {
        name: "max_age",
        about: "The time for which clients must use only HTTPS.",
        required: true,
        form: MAX_AGE,
    },
    Field {
        name: "include_subdomains",
        about: "Whether this applies to all names below the host. Default: false.",
        required: false,
        form: Form::Flag,
    },
    Field {
        name: "preload",
        about: "Whether browsers may include the host in their built-in list, which needs include_subdomains and a \
                max_age of at least 365d. Default: false.",
        required: false,
        form: Form::Flag,
    },
];

const MAX_AGE: Form = Form::Text(Text {
    expected: "a duration of whole seconds such as 1h or 365d",
    pattern: duration::PATTERN_OF_SECONDS,
    accepts: |text| max_age(text).is_some(),
    hidden: false,
});

/// A duration of whole seconds.
pub fn max_age(text: &str) -> Option<Duration> {
    duration::parse(text).filter(|duration| duration.subsec_nanos() == 0)
}

/// The time for which an idle connection to an origin is kept.
pub fn keepalive(text: &str) -> Option<Duration> {
    let accepted = Duration::from_millis(100)..=Duration::from_secs(60 * 60);
    duration::parse(text).filter(|time| accepted.contains(time))
}

/// The description of the texts that [`keepalive`] accepts.
pub const EXPECTED_KEEPALIVE: &str = "a duration from 100ms to 1h, such as 4s";

/// The JSON Schema of the file of sites, which includes the definitions of the policy.
pub fn schema() -> Value {
    let mut schema = FILE.schema();
    let policy: Value = serde_json::from_str(POLICY_SCHEMA).unwrap_or_default();
    let (edge, site) = split(&policy);
    let access = policy.pointer("/properties/access").cloned();
    if let Some(schema) = schema.as_object_mut() {
        let entries = [
            (
                "$schema",
                json!("https://json-schema.org/draft/2020-12/schema"),
            ),
            (
                "$defs",
                json!({"edge": edge, "policy": site, "access": access}),
            ),
            ("title", json!("Sites of Sluice")),
            ("description", json!("The sites that one edge serves.")),
        ];
        schema.extend(entries.map(|(name, value)| (name.to_owned(), value)));
    }
    schema
}

/// The definitions of the sections that all sites share, and the definitions of a site's sections.
fn split(policy: &Value) -> (Value, Value) {
    let mut edge = Map::new();
    let mut site = policy.get("properties").cloned().unwrap_or_default();
    if let Some(fields) = site.as_object_mut() {
        fields.remove("origin");
        fields.remove("access");
        for section in EDGE_SECTIONS {
            let shared = fields.remove(section).unwrap_or_default();
            edge.insert(section.to_owned(), shared);
        }
    }
    let lease = site
        .pointer_mut("/coalesce/properties")
        .and_then(Value::as_object_mut)
        .and_then(|fields| fields.remove("lease"));
    edge.insert("coalesce".to_owned(), mapping(json!({"lease": lease})));
    (mapping(edge.into()), mapping(site))
}

fn mapping(properties: Value) -> Value {
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_of_the_file_is_of_this_version() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/sites.schema.json");
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
            std::fs::write(path, text).unwrap();
        }
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let checked_in: Value = serde_json::from_str(&text).unwrap_or_default();
        assert!(
            checked_in == schema(),
            "{path} is not what the fields of the file and of the policy say; to regenerate it:\n\
             UPDATE_SCHEMA=1 cargo test -p sluice the_schema_of_the_file_is_of_this_version"
        );
    }

    #[test]
    fn the_schema_has_each_section_of_the_policy_once() {
        let schema = schema();
        let properties = |of: &str| {
            let pointer = format!("/$defs/{of}/properties");
            let fields = schema.pointer(&pointer).and_then(Value::as_object);
            fields.unwrap().keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(
            properties("edge"),
            ["coalesce", "hot", "limits", "purge", "store"]
        );
        let site = properties("policy");
        assert!(site.contains(&"cache".to_owned()) && !site.contains(&"origin".to_owned()));
        let leases = schema.to_string().matches("\"lease\"").count();
        assert_eq!(leases, 1);
    }
}
