// SPDX-License-Identifier: Apache-2.0
//! Responses that stream: their end is unknown, so no client may wait for it.

/// Media types of responses whose parts are used as soon as they arrive.
const STREAMED: [&str; 8] = [
    "application/json-seq",
    "application/jsonl",
    "application/ndjson",
    "application/stream+json",
    "application/x-ndjson",
    "application/x-json-stream",
    "multipart/x-mixed-replace",
    "text/event-stream",
];

/// Whether a response of an HTTP origin streams: it has one of these media types and no length.
pub fn is_stream(content_type: Option<&str>, has_length: bool) -> bool {
    let media_type = content_type.and_then(|value| value.split(';').next());
    let media_type = media_type.unwrap_or_default().trim();
    let mut streamed = STREAMED.iter();
    !has_length && streamed.any(|streamed| streamed.eq_ignore_ascii_case(media_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_a_media_type_of_streams_and_no_length() {
        for (content_type, has_length, expected) in [
            (Some("text/event-stream"), false, true),
            (Some("Text/Event-Stream; charset=utf-8"), false, true),
            (
                Some("multipart/x-mixed-replace;boundary=frame"),
                false,
                true,
            ),
            (Some("application/x-ndjson"), false, true),
            (Some("application/x-ndjson"), true, false),
            (Some("text/html"), false, false),
            (Some("text/event-stream-of-mine"), false, false),
            (Some(""), false, false),
            (None, false, false),
        ] {
            let found = is_stream(content_type, has_length);
            assert_eq!(found, expected, "{content_type:?} {has_length}");
        }
    }
}
