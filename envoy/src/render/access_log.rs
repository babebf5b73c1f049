// SPDX-License-Identifier: Apache-2.0
//! The access log in Envoy's configuration: the fields of a line, in Envoy's command operators.

use minijinja::{Value, context};

use crate::settings::{AccessLog, AccessLogFormat};

/// The fields that the filter reports for each request, if they apply, and whether they are numbers.
pub const ACCOUNT: &[(&str, bool)] = &[
    ("site", false),
    ("result", false),
    ("access", false),
    ("signing_key", false),
    ("access_user", false),
    ("key", false),
    ("role", false),
    ("wait_ms", true),
    ("origin_ms", true),
    ("attempts", true),
    ("bucket_error", false),
    ("bucket_request_id", false),
    ("uncacheable", false),
    ("slices", false),
];

/// The fields of a JSON line that Envoy knows without the filter.
const FIELDS: &[(&str, &str)] = &[
    ("time", "%START_TIME%"),
    ("client", CLIENT),
    ("protocol", "%PROTOCOL%"),
    ("tls_version", "%DOWNSTREAM_TLS_VERSION%"),
    ("method", METHOD),
    ("path", PATH),
    ("user_agent", "%REQ(USER-AGENT)%"),
    ("referer", "%REQ(REFERER)%"),
    ("request_id", "%REQ(X-REQUEST-ID)%"),
    ("status", "%RESPONSE_CODE%"),
    ("bytes", "%BYTES_SENT%"),
    ("duration_ms", "%DURATION%"),
    ("first_byte_ms", "%COMMON_DURATION(DS_RX_BEG:DS_TX_BEG:ms)%"),
    ("details", "%RESPONSE_CODE_DETAILS%"),
    ("flags", "%RESPONSE_FLAGS%"),
    ("cache_status", "%RESP(CACHE-STATUS)%"),
];
const CLIENT: &str = "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%";
const METHOD: &str = "%REQ(X-SLUICE-METHOD?:METHOD)%";
const PATH: &str = "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%";
/// [`PATH`] in Common Expression Language.
const PATH_EXPRESSION: &str = "('x-envoy-original-path' in request.headers ? \
    request.headers['x-envoy-original-path'] : request.headers[':path'])";
/// Whether a request is not a hit, in Common Expression Language.
const IS_NO_HIT: &str =
    "!('wasm.sluice.result' in filter_state && filter_state['wasm.sluice.result'] == b'hit')";

/// Whether this edge itself has answered a request, and no peer, in Common Expression Language.
const IS_OWN_ANSWER: &str = "response.code_details != 'via_upstream'";

/// Whether a request at the port for peers is not one for a slice, in Common Expression Language.
const IS_NO_SLICE: &str = "!('x-sluice-slice-state' in response.headers)";

/// The host of the client's request of an edge with named sites, in Common Expression Language.
const CLIENT_HOST: &str = "'wasm.sluice.host' in filter_state ? \
    string(filter_state['wasm.sluice.host']) : request.host";

/// The values for the template of the access log.
pub fn values(log: &AccessLog, named_sites: bool, tracing: bool, filter: bool) -> Value {
    // The host for the store differs from the client's host, which the filter reports if a site has it.
    let (host, site) = match named_sites {
        true => (format!("%CEL({CLIENT_HOST})%"), plain("site")),
        false => ("%REQ(:AUTHORITY)%".to_owned(), "-".to_owned()),
    };
    let (format, text, fields) = match &log.format {
        AccessLogFormat::Off => ("off", None, vec![]),
        AccessLogFormat::Text => ("text", Some(people(&host, &site)), vec![]),
        AccessLogFormat::Combined => ("combined", Some(combined()), vec![]),
        AccessLogFormat::Own(own) => ("own", Some(format!("{own}\n")), vec![]),
        AccessLogFormat::Json => ("json", None, json(host, tracing, filter)),
    };
    context! { format, text, fields, hits => log.hits, is_no_hit => IS_NO_HIT,
    is_own_answer => IS_OWN_ANSWER, is_no_slice => IS_NO_SLICE }
}

/// The filter state of a field of the filter.
fn plain(field: &str) -> String {
    format!("%FILTER_STATE(wasm.sluice.{field}:PLAIN)%")
}

fn json(host: String, tracing: bool, filter: bool) -> Vec<(&'static str, String)> {
    let known = FIELDS
        .iter()
        .map(|(name, operator)| (*name, (*operator).to_owned()));
    let trace = tracing.then(|| ("trace", "%TRACE_ID%".to_owned()));
    let account = ACCOUNT.iter().filter(|_| filter);
    let account = account.map(|(name, is_number)| match is_number {
        true => (*name, number(name)),
        false => (*name, plain(name)),
    });
    known
        .chain([("host", host)])
        .chain(trace)
        .chain(account)
        .collect()
}

/// A field of the filter as a number. Filter state has texts only.
fn number(field: &str) -> String {
    format!("%TYPED_CEL(int(string(filter_state['wasm.sluice.{field}'])))%")
}

/// A line for people.
fn people(host: &str, site: &str) -> String {
    format!(
        "%START_TIME% {CLIENT} {host} {site} %PROTOCOL% {METHOD} {PATH} %RESPONSE_CODE% %BYTES_SENT%B \
         %DURATION%ms %RESPONSE_CODE_DETAILS% %RESP(CACHE-STATUS)%\n"
    )
}

/// A line in the format `combined` of NCSA, Apache and nginx, then `Cache-Status` and the seconds until the response
/// was sent.
fn combined() -> String {
    let path = quotable(PATH_EXPRESSION);
    let [referer, agent] =
        ["referer", "user-agent"].map(|name| quotable(&format!("request.headers['{name}']")));
    let cache_status = quotable("response.headers['cache-status']");
    format!(
        "{CLIENT} - - [%START_TIME(%d/%b/%Y:%H:%M:%S %z)%] \"{METHOD} {path} %PROTOCOL%\" %RESPONSE_CODE% \
         %BYTES_SENT% \"{referer}\" \"{agent}\" \"{cache_status}\" \
         %CEL(string(request.duration).replace('s', ''))%\n"
    )
}

/// A value that may be put in quotes, escaped as nginx escapes it. Envoy refuses control characters in requests and
/// responses, so quotes and backslashes alone could forge a field.
fn quotable(expression: &str) -> String {
    format!(r#"%CEL({expression}.replace('\\', '\\x5C').replace('"', '\\x22'))%"#)
}
