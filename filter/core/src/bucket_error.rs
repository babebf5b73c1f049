// SPDX-License-Identifier: Apache-2.0
//! The errors of a bucket: their meaning for the edge, its operator and its clients, by S3's error codes.

use crate::http::syntax::field_value::FieldValue;
use crate::metrics::Metric;

/// Longest error code that is accepted, in bytes. The longest code of S3 has about 50.
const MAX_CODE_BYTES: usize = 64;
/// Longest name of a region that is accepted, in bytes.
const MAX_REGION_BYTES: usize = 32;

/// The headers of a bucket's response that describe an error; each may be missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct ErrorHeaders<'a> {
    /// [`crate::internal_headers::BUCKET_ERROR_HEADER`], which the hop takes from the body: the code, and perhaps a
    /// region.
    pub body: Option<FieldValue<'a>>,
    /// `X-Minio-Error-Code`, which a response without a body has.
    pub code: Option<FieldValue<'a>>,
    /// `X-Amz-Bucket-Region`.
    pub region: Option<FieldValue<'a>>,
}

/// Error response of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketError<'a> {
    /// `:status`.
    pub status: u16,
    /// S3's error code, such as `NoSuchKey`. The response to a HEAD may have none.
    pub code: Option<&'a str>,
    /// The region of the bucket, if the response names it.
    pub region: Option<&'a str>,
}

/// Cause of a bucket's error that is not about one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketTrouble {
    /// The bucket asks for fewer requests.
    Throttled,
    /// The bucket itself has failed.
    Failed,
    /// The bucket is in another region, or requests are signed for another.
    Region,
    /// The credentials are wrong, or have expired.
    Credentials,
    /// The clocks of the edge and of the bucket differ by more than S3 tolerates.
    ClockSkew,
    /// The bucket does not exist.
    NoBucket,
    /// The bucket refuses a request without a code. The edge refuses malformed URLs itself, so the edge's settings
    /// are the likely cause.
    Refused,
}

impl<'a> BucketError<'a> {
    /// Reads the error in a response with this status and these headers; `None` if the response is not an error.
    pub fn of(status: u16, headers: ErrorHeaders<'a>) -> Option<Self> {
        if status < 300 || status == 304 {
            return None;
        }
        // A value that is not text is neither a code nor a region.
        let text = |value: Option<FieldValue<'a>>| value.and_then(|value| value.text().ok());
        let mut words = text(headers.body).unwrap_or_default().split(' ');
        let code = words.next().filter(|code| is_code(code));
        let region = text(headers.region).or_else(|| words.next());
        Some(Self {
            status,
            code: code.or(text(headers.code).filter(|code| is_code(code))),
            region: region.filter(|region| is_region(region)),
        })
    }

    /// Cause of the error; `None` if the error is about the requested object.
    pub fn trouble(&self) -> Option<BucketTrouble> {
        // A bucket's API redirects only to its own other endpoints.
        if matches!(self.status, 300..=399) {
            return Some(BucketTrouble::Region);
        }
        let by_code = self.code.and_then(trouble_of);
        by_code.or(match self.status {
            400 if self.code.is_none() && self.region.is_some() => Some(BucketTrouble::Region),
            400 if self.code.is_none() => Some(BucketTrouble::Refused),
            // Amazon S3 has no 401. No client's `Authorization` reaches a bucket, so a 401 is about the edge's own.
            401 => Some(BucketTrouble::Credentials),
            429 => Some(BucketTrouble::Throttled),
            500..=599 => Some(BucketTrouble::Failed),
            _ => None,
        })
    }

    /// Whether the bucket says that no object can have this name, because a key, or a segment of it, is too long for
    /// it.
    pub fn names_nothing(&self) -> bool {
        const CODES: [&str; 2] = ["KeyTooLongError", "XMinioInvalidObjectName"];
        self.status == 400 && self.code.is_some_and(|code| CODES.contains(&code))
    }

    /// Message for the operator in the log.
    pub fn message(&self, trouble: BucketTrouble) -> String {
        let answer = match self.code {
            Some(code) => format!("{} {code}", self.status),
            None => self.status.to_string(),
        };
        match (trouble, self.region) {
            // Without a code the credentials may be wrong as well.
            (BucketTrouble::Region, Some(region)) if self.status == 400 && self.code.is_none() => {
                format!(
                    "the bucket is in the region {region} ({answer}): set AWS_REGION={region}; if it is set already, \
                     check the credentials"
                )
            }
            (BucketTrouble::Region, Some(region)) => {
                format!("the bucket is in the region {region} ({answer}): set AWS_REGION={region}")
            }
            (BucketTrouble::Region, None) => format!(
                "the bucket is in another region or at another endpoint ({answer}): correct AWS_REGION or SLUICE_S3_ENDPOINT"
            ),
            (BucketTrouble::Credentials, _) => format!(
                "the bucket refuses the credentials ({answer}): renew or correct AWS_ACCESS_KEY_ID, \
                 AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or the role"
            ),
            (BucketTrouble::ClockSkew, _) => format!(
                "the clock of this machine and that of the bucket differ by too much ({answer}): set the clock"
            ),
            (BucketTrouble::NoBucket, _) => {
                format!(
                    "there is no such bucket ({answer}): correct SLUICE_ORIGIN, SLUICE_S3_ENDPOINT or SLUICE_S3_ADDRESSING"
                )
            }
            (BucketTrouble::Refused, _) => format!(
                "the bucket refuses a request and does not say why ({answer}): check AWS_REGION, SLUICE_S3_ADDRESSING and \
                 the credentials"
            ),
            (BucketTrouble::Throttled, _) => format!("the bucket wants fewer requests ({answer})"),
            (BucketTrouble::Failed, _) => format!("the bucket has failed ({answer})"),
        }
    }
}

impl BucketTrouble {
    /// The status that clients get. A fault between the edge and its bucket is not the client's (RFC 9110, 15.6.3).
    pub const fn client_status(self, status: u16) -> u16 {
        match self {
            Self::Region | Self::Credentials | Self::ClockSkew | Self::NoBucket => 502,
            Self::Throttled | Self::Failed | Self::Refused => status,
        }
    }

    /// Whether the response says nothing about the object, so that it is never stored.
    pub const fn is_never_stored(self) -> bool {
        !matches!(self, Self::Throttled | Self::Failed)
    }

    /// The metric that counts such responses.
    pub const fn metric(self) -> Metric {
        match self {
            Self::Throttled => Metric::BucketThrottled,
            Self::Failed => Metric::BucketFailed,
            Self::Region => Metric::BucketRegionWrong,
            Self::Credentials => Metric::BucketCredentialsRefused,
            Self::ClockSkew => Metric::BucketClockSkewed,
            Self::NoBucket => Metric::BucketMissing,
            Self::Refused => Metric::BucketRefused,
        }
    }
}

/// Meaning of an error code of Amazon S3 or MinIO; `None` if the status of the response decides.
fn trouble_of(code: &str) -> Option<BucketTrouble> {
    Some(match code {
        "SlowDown"
        | "SlowDownRead"
        | "SlowDownWrite"
        | "TooManyRequests"
        | "RequestLimitExceeded"
        | "BandwidthLimitExceeded" => BucketTrouble::Throttled,
        "AuthorizationHeaderMalformed"
        | "IllegalLocationConstraintException"
        | "IncorrectEndpoint"
        | "PermanentRedirect"
        | "Redirect"
        | "TemporaryRedirect" => BucketTrouble::Region,
        "AccountProblem"
        | "ExpiredToken"
        | "InvalidAccessKeyId"
        | "InvalidSecurity"
        | "InvalidToken"
        | "InvalidTokenId"
        | "NotSignedUp"
        | "SignatureDoesNotMatch"
        | "TokenRefreshRequired"
        | "XMinioInvalidIAMCredentials" => BucketTrouble::Credentials,
        "RequestExpired" | "RequestTimeTooSkewed" => BucketTrouble::ClockSkew,
        "InvalidBucketName" | "NoSuchBucket" => BucketTrouble::NoBucket,
        _ => return None,
    })
}

fn is_code(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.';
    text.bytes().all(allowed) && (1..=MAX_CODE_BYTES).contains(&text.len())
}

fn is_region(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    text.bytes().all(allowed) && (1..=MAX_REGION_BYTES).contains(&text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error<'a>(status: u16, body: &'a str) -> BucketError<'a> {
        let headers = ErrorHeaders {
            body: Some(body.into()),
            ..ErrorHeaders::default()
        };
        BucketError::of(status, headers).unwrap()
    }

    #[test]
    fn the_code_says_what_is_wrong_and_the_status_where_there_is_none() {
        for (status, body, trouble, told) in [
            (503, "SlowDown", Some(BucketTrouble::Throttled), 503),
            (429, "", Some(BucketTrouble::Throttled), 429),
            (503, "", Some(BucketTrouble::Failed), 503),
            (401, "", Some(BucketTrouble::Credentials), 502),
            (401, "Unauthorized", Some(BucketTrouble::Credentials), 502),
            (500, "InternalError", Some(BucketTrouble::Failed), 500),
            (301, "PermanentRedirect", Some(BucketTrouble::Region), 502),
            (301, "", Some(BucketTrouble::Region), 502),
            (307, "TemporaryRedirect", Some(BucketTrouble::Region), 502),
            (302, "SlowDown", Some(BucketTrouble::Region), 502),
            (
                400,
                "AuthorizationHeaderMalformed",
                Some(BucketTrouble::Region),
                502,
            ),
            (400, "ExpiredToken", Some(BucketTrouble::Credentials), 502),
            (403, "ExpiredToken", Some(BucketTrouble::Credentials), 502),
            (
                403,
                "InvalidAccessKeyId",
                Some(BucketTrouble::Credentials),
                502,
            ),
            (
                403,
                "SignatureDoesNotMatch",
                Some(BucketTrouble::Credentials),
                502,
            ),
            (
                403,
                "RequestTimeTooSkewed",
                Some(BucketTrouble::ClockSkew),
                502,
            ),
            (404, "NoSuchBucket", Some(BucketTrouble::NoBucket), 502),
            (400, "", Some(BucketTrouble::Refused), 400),
            // The error is about one object, because its key is at fault.
            (400, "KMS.DisabledException", None, 400),
            (400, "KMS.NotFoundException", None, 400),
            (403, "AccessDenied", None, 403),
            (403, "", None, 403),
            (404, "NoSuchKey", None, 404),
            (412, "PreconditionFailed", None, 412),
        ] {
            let error = error(status, body);
            assert_eq!(error.trouble(), trouble, "{status} {body}");
            let client_status = trouble.map_or(status, |trouble| trouble.client_status(status));
            assert_eq!(client_status, told, "{status} {body}");
        }
        for status in [200, 206, 304] {
            assert_eq!(BucketError::of(status, ErrorHeaders::default()), None);
        }
    }

    #[test]
    fn what_can_have_no_object_is_missing() {
        for code in ["KeyTooLongError", "XMinioInvalidObjectName"] {
            let error = error(400, code);
            assert!(error.names_nothing() && error.trouble().is_none(), "{code}");
        }
        for (status, code) in [
            (400, "InvalidArgument"),
            (400, ""),
            (403, "KeyTooLongError"),
        ] {
            assert!(!error(status, code).names_nothing(), "{status} {code}");
        }
    }

    #[test]
    fn a_response_without_a_body_tells_by_its_headers() {
        let minio = ErrorHeaders {
            code: Some("InvalidAccessKeyId".into()),
            ..ErrorHeaders::default()
        };
        let refused = BucketError::of(403, minio).unwrap();
        assert_eq!(refused.trouble(), Some(BucketTrouble::Credentials));
        let elsewhere = ErrorHeaders {
            region: Some("eu-west-1".into()),
            ..ErrorHeaders::default()
        };
        let elsewhere = BucketError::of(400, elsewhere).unwrap();
        assert_eq!(elsewhere.trouble(), Some(BucketTrouble::Region));
        assert_eq!(
            elsewhere.message(BucketTrouble::Region),
            "the bucket is in the region eu-west-1 (400): set AWS_REGION=eu-west-1; if it is set already, check the credentials"
        );
    }

    #[test]
    fn the_message_names_the_code_and_the_region_of_the_body() {
        let error = error(400, "AuthorizationHeaderMalformed eu-west-1");
        assert_eq!(
            error.message(BucketTrouble::Region),
            "the bucket is in the region eu-west-1 (400 AuthorizationHeaderMalformed): set AWS_REGION=eu-west-1"
        );
    }

    #[test]
    fn what_is_no_code_or_region_is_not_repeated() {
        let long = "A".repeat(65);
        for body in [
            "",
            " ",
            "<b>",
            "Slow\nDown",
            "Slow-Down",
            long.as_str(),
            "É",
        ] {
            assert_eq!(error(500, body).code, None, "{body}");
        }
        for body in ["Redirect", "Redirect ", "Redirect a\u{e9}", "Redirect a\nb"] {
            let error = error(301, body);
            assert_eq!(
                (error.code, error.region),
                (Some("Redirect"), None),
                "{body}"
            );
        }
    }
}
