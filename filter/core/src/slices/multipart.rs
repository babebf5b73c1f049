// SPDX-License-Identifier: Apache-2.0
//! Bodies of the type `multipart/byteranges` (RFC 9110, 14.6).

use crate::http::conditional::range::Slice;

/// The parts of a multipart body that are not bytes of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multipart {
    /// Text that separates the parts. It is a keyed hash, so that no author of an object can know it.
    pub boundary: String,
    /// `Content-Type` of the object, if it has one.
    pub content_type: Option<String>,
}

impl Multipart {
    /// Value of the response's `Content-Type`.
    pub fn response_type(&self) -> String {
        format!("multipart/byteranges; boundary={}", self.boundary)
    }

    /// Text in front of the bytes of a range of an object of `length` bytes.
    pub fn head(&self, range: Slice, length: u64, is_first: bool) -> String {
        let line_end = if is_first { "" } else { "\r\n" };
        let content_type = self.content_type.as_ref();
        let content_type = content_type.map(|value| format!("Content-Type: {value}\r\n"));
        format!(
            "{line_end}--{}\r\n{}Content-Range: {}\r\n\r\n",
            self.boundary,
            content_type.unwrap_or_default(),
            range.content_range(length)
        )
    }

    /// Text behind the last range.
    pub fn end(&self) -> String {
        format!("\r\n--{}--\r\n", self.boundary)
    }
}

#[cfg(test)]
mod tests {
    use crate::slices::multipart::*;

    #[test]
    fn each_part_has_its_type_and_its_range() {
        let multipart = Multipart {
            boundary: "b".to_owned(),
            content_type: Some("video/mp4".to_owned()),
        };
        let range = Slice::new(5, 9).unwrap();
        assert_eq!(
            multipart.response_type(),
            "multipart/byteranges; boundary=b"
        );
        assert_eq!(
            multipart.head(range, 10, true),
            "--b\r\nContent-Type: video/mp4\r\nContent-Range: bytes 5-9/10\r\n\r\n"
        );
        let untyped = Multipart {
            content_type: None,
            ..multipart
        };
        assert_eq!(
            untyped.head(range, 10, false),
            "\r\n--b\r\nContent-Range: bytes 5-9/10\r\n\r\n"
        );
        assert_eq!(untyped.end(), "\r\n--b--\r\n");
    }
}
