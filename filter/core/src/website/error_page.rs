// SPDX-License-Identifier: Apache-2.0
//! The page in the place of a bucket's errors. The bucket's own text is for the bucket's owner: S3's XML names the
//! bucket, the object's key, the host and the request.

/// `Content-Type` of the page.
pub const MEDIA_TYPE: &str = "text/html; charset=utf-8";

/// Response headers that describe the replaced body, and would be wrong for the page. `Location` would send clients
/// past the edge, because S3 redirects only between its own hosts.
pub const REPLACED_HEADERS: [&str; 9] = [
    "accept-ranges",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-md5",
    "etag",
    "last-modified",
    "location",
    "transfer-encoding",
];

/// Whether a bucket's response with that status is meant for its owner, and is not an object.
pub fn replaces(status: u16) -> bool {
    status >= 300 && status != 304
}

/// Returns the page for a status.
pub fn page(status: u16) -> String {
    let reason = reason(status);
    let space = if reason.is_empty() { "" } else { " " };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <title>{status}{space}{reason}</title>\n<h1>{status}{space}{reason}</h1>\n"
    )
}

/// Reason phrase of a status (RFC 9110, 15; RFC 6585).
fn reason(status: u16) -> &'static str {
    match status {
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        416 => "Range Not Satisfiable",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}
