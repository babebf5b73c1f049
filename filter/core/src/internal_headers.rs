// SPDX-License-Identifier: Apache-2.0
//! Names of the filter's own headers, by which its roles and the hop tell each other of a request. None of them reaches
//! a client or an origin. `x-sluice-link`, `x-sluice-path`, `x-sluice-around`, `x-sluice-entry` and `x-sluice-fields` are
//! the store's.

/// Name of the request header by which ORIGIN tells the native guard that it has checked a request.
pub const PROOF_HEADER: &str = "x-sluice-proof";
/// Name of the request header by which ORIGIN tells the hop which server a request is for, of all servers of sites. A
/// site without a name has none.
pub const SERVER_HEADER: &str = "x-sluice-server";
/// Name of the request header by which a gateway before a fleet of edges says the key, so that the mesh finds
/// the edge that owns it. Edges take it from nobody: like all of these it is removed from what clients send.
pub const KEY_HEADER: &str = "x-sluice-key";
/// Name of the request header with the client's method, for the access log, where the store is sent another.
pub const METHOD_HEADER: &str = "x-sluice-method";
/// Name of the request header with the client's `:path`, where the store is sent another. It is Envoy's own, which
/// its access logs and traces prefer to `:path`.
pub const ORIGINAL_PATH_HEADER: &str = "x-envoy-original-path";
/// Name of the request header by which ORIGIN asks for a response that is compressed on its way into
/// the cache; without it nothing is.
pub const COMPRESS_HEADER: &str = "x-sluice-compress";
/// Value of [`COMPRESS_HEADER`] where the response's own media type decides.
pub const COMPRESS_TYPED: &str = "1";
/// Value of [`COMPRESS_HEADER`] where a response without a media type gets one that is compressed.
pub const COMPRESS_UNTYPED: &str = "untyped";
/// Name of the response header by which Envoy marks a response that it has made by itself in the origin's
/// place: no connection, no answer in time, a connection that broke. Its value says what has happened, as
/// Envoy's `%RESPONSE_CODE_DETAILS%` do, and after a space how many bytes of the origin's Envoy has read.
pub const FAILURE_HEADER: &str = "x-sluice-origin-failed";
/// Name of the response header by which Envoy tells ORIGIN the error code in the body of a bucket's response, and the
/// region that the body names, if it names one, after a space.
pub const BUCKET_ERROR_HEADER: &str = "x-sluice-bucket-error";
/// Name of the response header with the origin's `Connection`, which Envoy has removed when ORIGIN sees the response.
pub const CONNECTION_HEADER: &str = "x-sluice-connection";
/// Name of the request header by which ORIGIN tells Envoy that the store serves a stale response if the bucket fails, so
/// that a client does not wait for retries.
pub const FALLBACK_HEADER: &str = "x-sluice-fallback";
/// Name of the request header by which EDGE asks the hop to bring a request without a body back to it.
pub const EMPTY_HEADER: &str = "x-sluice-empty";
/// Name of the request header by which the hop marks a request that it sends once more.
pub const AGAIN_HEADER: &str = "x-sluice-again";
/// Name of the request header in which EDGE hides a client's `Authorization` from the store, which would not look for a
/// response, and ORIGIN finds it.
pub const AUTHORIZATION_HEADER: &str = "x-sluice-authorization";
/// Beginning of the names of all headers of the filter's own.
pub const INTERNAL_PREFIX: &str = "x-sluice-";
