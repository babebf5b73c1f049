// SPDX-License-Identifier: Apache-2.0
//! The origin's answer to the request for a slice, which has `Range` and `If-Match`.

use crate::http::conditional::entity_tag::EntityTag;
use crate::http::conditional::range::Slice;
use crate::http::syntax::field_value::FieldValue;

/// A slice as it is requested from the origin.
#[derive(Clone, Copy, Debug)]
pub struct SliceRequest<'a> {
    /// The bytes of the slice.
    pub range: Slice,
    /// Length of the object in bytes.
    pub length: u64,
    /// The strong entity tag of the object.
    pub etag: &'a str,
}

impl SliceRequest<'_> {
    /// Value of `Range`.
    pub fn range_value(&self) -> String {
        format!("bytes={}-{}", self.range.first(), self.range.last())
    }
}

/// The parts of an origin's answer that decide what became of a slice.
#[derive(Clone, Copy, Debug, Default)]
pub struct OriginAnswer<'a> {
    /// Status of the response.
    pub status: u16,
    /// `ETag`.
    pub etag: Option<FieldValue<'a>>,
    /// `Content-Range`.
    pub content_range: Option<FieldValue<'a>>,
    /// `Content-Length`.
    pub content_length: Option<u64>,
}

/// The result of a request for a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceOutcome {
    /// The body has exactly the bytes of the slice.
    Good,
    /// The origin has another object now, or does not send ranges of it.
    Changed,
    /// The origin no longer has the object, or does not give it.
    Gone,
    /// The origin has failed. The object may still be the same.
    Failed,
}

impl SliceOutcome {
    /// Judges an answer to `request`.
    pub fn of(request: &SliceRequest<'_>, answer: &OriginAnswer<'_>) -> Self {
        match answer.status {
            206 if request.is_answered_by(answer) => Self::Good,
            200..=299 | 412 | 416 => Self::Changed,
            301..=303 | 307 | 308 => Self::Changed,
            401 | 403 | 404 | 410 | 451 => Self::Gone,
            _ => Self::Failed,
        }
    }
}

impl SliceRequest<'_> {
    /// Whether a 206 has the bytes of the slice, of the same version.
    fn is_answered_by(&self, answer: &OriginAnswer<'_>) -> bool {
        let text = |value: Option<FieldValue<'_>>, expected: &dyn Fn(&str) -> bool| {
            value.is_some_and(|value| value.text().is_ok_and(expected))
        };
        let is_same = |etag: &str| {
            let tags = EntityTag::parse(etag).zip(EntityTag::parse(self.etag));
            tags.is_some_and(|(one, other)| one.is_strongly(other))
        };
        let expected = self.range.content_range(self.length);
        let is_range = |range: &str| range.trim().eq_ignore_ascii_case(&expected);
        let has_length = answer
            .content_length
            .is_none_or(|bytes| bytes == self.range.length());
        text(answer.etag, &is_same) && text(answer.content_range, &is_range) && has_length
    }
}

#[cfg(test)]
mod tests {
    use crate::slices::origin_answer::*;

    const RANGE: FieldValue<'_> = FieldValue::new(b"bytes 1000-1999/2500");
    const GOOD: OriginAnswer<'_> = OriginAnswer {
        status: 206,
        etag: Some(FieldValue::new(b"\"v1\"")),
        content_range: Some(RANGE),
        content_length: Some(1_000),
    };

    fn judge(answer: OriginAnswer<'_>) -> SliceOutcome {
        let request = SliceRequest {
            range: Slice::new(1_000, 1_999).unwrap(),
            length: 2_500,
            etag: "\"v1\"",
        };
        SliceOutcome::of(&request, &answer)
    }

    #[test]
    fn exactly_the_bytes_of_the_same_version_are_good() {
        assert_eq!(judge(GOOD), SliceOutcome::Good);
        let unmeasured = OriginAnswer {
            content_length: None,
            ..GOOD
        };
        assert_eq!(judge(unmeasured), SliceOutcome::Good);
    }

    #[test]
    fn another_version_length_or_range_is_a_change() {
        let value = |text| Some(FieldValue::new(text));
        for answer in [
            OriginAnswer {
                etag: value(b"\"v2\""),
                ..GOOD
            },
            OriginAnswer {
                etag: value(b"W/\"v1\""),
                ..GOOD
            },
            OriginAnswer {
                etag: value(b"v1"),
                ..GOOD
            },
            OriginAnswer { etag: None, ..GOOD },
            OriginAnswer {
                content_range: value(b"bytes 1000-1999/2501"),
                ..GOOD
            },
            OriginAnswer {
                content_range: value(b"bytes 1000-1998/2500"),
                ..GOOD
            },
            OriginAnswer {
                content_range: value(b"bytes 1000-1999/*"),
                ..GOOD
            },
            OriginAnswer {
                content_range: None,
                ..GOOD
            },
            OriginAnswer {
                content_length: Some(999),
                ..GOOD
            },
            OriginAnswer {
                status: 200,
                ..GOOD
            },
            OriginAnswer {
                status: 204,
                ..GOOD
            },
        ] {
            assert_eq!(judge(answer), SliceOutcome::Changed, "{answer:?}");
        }
    }

    #[test]
    fn the_status_tells_what_became_of_the_object() {
        for (outcome, statuses) in [
            (SliceOutcome::Changed, &[301, 302, 308, 412, 416][..]),
            (SliceOutcome::Gone, &[401, 403, 404, 410, 451]),
            (
                SliceOutcome::Failed,
                &[304, 400, 408, 429, 500, 502, 503, 504],
            ),
        ] {
            for &status in statuses {
                assert_eq!(judge(OriginAnswer { status, ..GOOD }), outcome, "{status}");
            }
        }
    }

    #[test]
    fn the_origin_is_asked_for_the_bytes_of_the_slice() {
        let request = SliceRequest {
            range: Slice::new(0, 9).unwrap(),
            length: 10,
            etag: "\"a\"",
        };
        assert_eq!(request.range_value(), "bytes=0-9");
    }
}
