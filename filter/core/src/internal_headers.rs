// SPDX-License-Identifier: Apache-2.0
//! Names of the filter's own headers, by which its roles and the hop exchange facts about a request. No client and no
//! origin gets one of them. The store crate defines `x-sluice-link`, `x-sluice-path`, `x-sluice-around`,
//! `x-sluice-entry` and `x-sluice-fields`.

/// Name of the request header by which ORIGIN tells the native guard that it has checked a request.
pub const PROOF_HEADER: &str = "x-sluice-proof";
/// Name of the request header with the client's address, by which EDGE tells it to the cluster of a server that is
/// asked for access, and an edge to its peers.
pub const CLIENT_HEADER: &str = "x-sluice-client";
/// Name of the response header by which the verifier of tokens, a listener inside of Envoy, tells EDGE the issuer of a
/// token that it has verified.
pub const TOKEN_ISSUER_HEADER: &str = "x-sluice-token-issuer";
/// Name of the response header by which the verifier of tokens tells EDGE the reason of a refusal, as in Envoy's
/// `%RESPONSE_CODE_DETAILS%`.
pub const TOKEN_REFUSAL_HEADER: &str = "x-sluice-token-refusal";
/// Name of the request header by which ORIGIN tells the hop the server of a request, among the servers of all sites.
/// A site without a name does not use it.
pub const SERVER_HEADER: &str = "x-sluice-server";
/// Name of the request header in which FRONT tells the key, so that the mesh or Envoy finds the edge that owns it. Edges
/// do not accept it: like all headers of this prefix it is removed from clients' requests.
pub const KEY_HEADER: &str = "x-sluice-key";
/// Name of the request header with the secret by which an edge recognizes a request of its peers.
pub const PEER_HEADER: &str = "x-sluice-peer";
/// Name of the request header with the purges that the sender of a peer's request has applied, and of the response
/// header with the position in the purge feed of the edge that has answered it.
pub const PURGES_HEADER: &str = "x-sluice-purges";
/// Name of the request header with the value of [`PURGES_HEADER`] behind FRONT of another proxy of a mesh, whose listener
/// removes headers of [`INTERNAL_PREFIX`].
pub const FRONTS_PURGES_HEADER: &str = "sluice-purges";
/// Name of the response header by which an edge tells the sender of a request that it does not recognize a peer, or
/// that it lacks purges, so that the sender asks another edge.
pub const PEER_REFUSED_HEADER: &str = "x-sluice-peer-refused";
/// Name of the request header with the client's method, for the access log, if the store gets another method.
pub const METHOD_HEADER: &str = "x-sluice-method";
/// Name of the request header with the client's `:path`, if the store gets another path. It is a header of Envoy's,
/// which Envoy's access logs and traces prefer to `:path`.
pub const ORIGINAL_PATH_HEADER: &str = "x-envoy-original-path";
/// Name of the request header by which ORIGIN asks for compression of the response on its way into the cache. Without
/// it no response is compressed.
pub const COMPRESS_HEADER: &str = "x-sluice-compress";
/// Value of [`COMPRESS_HEADER`] if the response's own media type decides.
pub const COMPRESS_TYPED: &str = "1";
/// Value of [`COMPRESS_HEADER`] if a response without a media type gets one that is compressed.
pub const COMPRESS_UNTYPED: &str = "untyped";
/// Name of the response header by which Envoy marks a response that Envoy has made in the origin's place: no
/// connection, no response in time, a broken connection. Its value is the reason, as in Envoy's
/// `%RESPONSE_CODE_DETAILS%`, and after a space the number of bytes that Envoy has read from the origin.
pub const FAILURE_HEADER: &str = "x-sluice-origin-failed";
/// Name of the response header by which the hop tells ORIGIN that the site's second origin has sent the response. Its
/// value is the time in seconds for which the response may be fresh, or `missing` if the first origin lacks the object.
pub const SECOND_ORIGIN_HEADER: &str = "x-sluice-second-origin";
/// Name of the response header by which the server of a first origin tells the hop that the origin seems to lack the
/// object, and of the request header by which the hop then asks the second origin. The value of the response header is
/// the code of the bucket's error, or `none` for an error without a body.
pub const MISSING_HEADER: &str = "x-sluice-missing";
/// Name of the request header that says for which of a site's origins a request is, behind their pair.
pub const ATTEMPT_HEADER: &str = "x-sluice-attempt";
/// Name of the response header by which Envoy tells ORIGIN the error code in the body of a bucket's response. If the
/// body names a region, it follows after a space.
pub const BUCKET_ERROR_HEADER: &str = "x-sluice-bucket-error";
/// Name of the response header with the origin's `Connection`, because Envoy removes that field before ORIGIN sees
/// the response.
pub const CONNECTION_HEADER: &str = "x-sluice-connection";
/// Name of the request header by which ORIGIN tells Envoy that the store serves a stale response if the bucket fails,
/// so that no client waits for retries.
pub const FALLBACK_HEADER: &str = "x-sluice-fallback";
/// Name of the request header by which EDGE asks the hop to send a request without a body back to EDGE.
pub const EMPTY_HEADER: &str = "x-sluice-empty";
/// Name of the request header by which the hop marks a request that it sends a second time.
pub const AGAIN_HEADER: &str = "x-sluice-again";
/// Name of the request header in which EDGE hides a client's `Authorization` from the store, which would not look up
/// a response otherwise. ORIGIN restores it.
pub const AUTHORIZATION_HEADER: &str = "x-sluice-authorization";
/// Name of the request header by which EDGE asks the slicer for a response that is made of slices, and of the response
/// header by which EDGE tells it the plan for an object that has changed. Its value is a
/// [`SlicePlan`](crate::slices::plan::SlicePlan).
pub const SLICES_HEADER: &str = "x-sluice-slices";
/// Name of the request header by which the slicer tells EDGE which slice it asks for. Its value is an
/// [`AskedSlice`](crate::slices::asked::AskedSlice).
pub const SLICE_HEADER: &str = "x-sluice-slice";
/// Name of the response header by which EDGE tells the slicer what became of a slice. Its value is a
/// [`SliceState`](crate::slices::asked::SliceState).
pub const SLICE_STATE_HEADER: &str = "x-sluice-slice-state";
/// Name of the request header by which an edge tells a peer the version of the object whose slice it requests, and how
/// the object is divided. The slice itself is in [`KEY_HEADER`]. See
/// [`PeerSlice`](crate::slices::peer_slice::PeerSlice).
pub const SLICE_VERSION_HEADER: &str = "x-sluice-slice-version";
/// Name of the response header by which an edge tells the sender of a peer's request that the object is served in
/// slices, so that the sender requests the slices itself from then on.
pub const LARGE_HEADER: &str = "x-sluice-large";
/// Name of the request header by which FRONT has this edge handle a request, and no peer.
pub const OWN_HEADER: &str = "x-sluice-own";
/// Names of the request headers on which the route depends.
pub const ROUTING_HEADERS: [&str; 3] = [SLICES_HEADER, SLICE_VERSION_HEADER, OWN_HEADER];
/// Beginning of the names of all of the filter's own headers.
pub const INTERNAL_PREFIX: &str = "x-sluice-";
