// SPDX-License-Identifier: Apache-2.0
//! The diagnosis of a bucket's answer for an object that it cannot have: credentials, region, permissions and
//! clock.

use std::time::{Duration, SystemTime};

use sluice_core::bucket_error::{BucketError, ErrorHeaders};
use sluice_core::http::syntax::date;

use super::Finding;

/// The difference between two clocks with which S3 refuses signed requests.
const TOLERATED: Duration = Duration::from_secs(15 * 60);
/// The difference from which on the check warns.
const NOTABLE: Duration = Duration::from_secs(60);

/// An answer of a bucket.
#[derive(Clone, Debug)]
pub struct BucketAnswer {
    /// `:status`.
    pub status: u16,
    /// `Date`.
    pub date: Option<String>,
    /// `X-Amz-Bucket-Region`.
    pub region: Option<String>,
    /// The beginning of the body, XML for an error.
    pub body: String,
    /// The time of the answer, by the clock of this machine.
    pub now: SystemTime,
}

impl BucketAnswer {
    /// The problems, each with its remedy.
    pub fn findings(&self) -> Vec<Finding> {
        let clock = self.clock();
        // With such a wrong clock the bucket refuses the request, for this reason or for another one.
        if clock.as_ref().is_some_and(Finding::is_problem) {
            return clock.into_iter().collect();
        }
        clock.into_iter().chain(self.refusal()).collect()
    }

    fn clock(&self) -> Option<Finding> {
        let here = self.now.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let there = u64::try_from(date::parse(self.date.as_deref()?)?).ok()?;
        let difference = Duration::from_secs(here.as_secs().abs_diff(there));
        let side = if here.as_secs() > there {
            "ahead of"
        } else {
            "behind"
        };
        let seconds = difference.as_secs();
        let text = format!(
            "the clock of this machine is {seconds} s {side} that of the bucket: set the clock; run NTP"
        );
        match difference {
            difference if difference > TOLERATED => Some(Finding::problem(text)),
            difference if difference > NOTABLE => Some(Finding::warning(text)),
            _ => None,
        }
    }

    fn refusal(&self) -> Option<Finding> {
        let text = |tag| element(&self.body, tag).unwrap_or_default();
        let code = match text("Code") {
            // This request is signed in its URL. The edge's requests are signed in a header, for which S3 has
            // another code.
            "AuthorizationQueryParametersError" => "AuthorizationHeaderMalformed",
            code => code,
        };
        let words = format!("{code} {}", text("Region"));
        let headers = ErrorHeaders {
            body: Some(words.trim_end().into()),
            code: None,
            region: self.region.as_deref().map(Into::into),
        };
        let error = BucketError::of(self.status, headers)?;
        let message = match (error.trouble(), self.status) {
            (Some(trouble), _) => error.message(trouble),
            (None, 403) => "the bucket answers 403 for an object that does not exist: the credentials may not list \
                            the bucket, or may not read it at all: allow s3:GetObject on its objects, and s3:ListBucket \
                            on the bucket so that what is missing is answered with 404"
                .to_owned(),
            (None, _) => return None,
        };
        Some(Finding::problem(message))
    }
}

/// The text of the first element of this `name`, which has no attributes.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once('<')?;
    Some(text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Level;

    const NOW: u64 = 1_000_000_000;

    fn answer(status: u16, body: &str) -> BucketAnswer {
        BucketAnswer {
            status,
            date: Some(date::format(1_000_000_000)),
            region: None,
            body: body.to_owned(),
            now: SystemTime::UNIX_EPOCH + Duration::from_secs(NOW),
        }
    }

    #[test]
    fn what_the_bucket_says_is_told_with_its_remedy() {
        for (status, body, expected) in [
            (
                403,
                "<Error><Code>InvalidAccessKeyId</Code></Error>",
                "refuses the credentials (403 InvalidAccessKeyId): renew or correct",
            ),
            (
                403,
                "<Error><Code>SignatureDoesNotMatch</Code></Error>",
                "refuses the credentials",
            ),
            (
                400,
                "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error>",
                "set AWS_REGION=eu-west-1",
            ),
            (
                400,
                "<Error><Code>AuthorizationQueryParametersError</Code><Region>eu-west-1</Region></Error>",
                "(400 AuthorizationHeaderMalformed): set AWS_REGION=eu-west-1",
            ),
            (
                301,
                "<Error><Code>PermanentRedirect</Code></Error>",
                "correct AWS_REGION or SLUICE_S3_ENDPOINT",
            ),
            (
                404,
                "<Error><Code>NoSuchBucket</Code></Error>",
                "correct SLUICE_ORIGIN, SLUICE_S3_ENDPOINT or SLUICE_S3_ADDRESSING",
            ),
            (
                403,
                "<Error><Code>AccessDenied</Code></Error>",
                "allow s3:GetObject on its objects, and s3:ListBucket",
            ),
            (503, "", "the bucket has failed (503)"),
        ] {
            let findings = answer(status, body).findings();
            assert!(
                matches!(&findings[..], [Finding { level: Level::Error, message, .. }] if message.contains(expected)),
                "{body}: {findings:?}"
            );
        }
    }

    #[test]
    fn an_object_that_is_missing_is_what_is_expected() {
        for body in [
            "",
            "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code></Error>",
        ] {
            assert_eq!(answer(404, body).findings(), []);
        }
        assert_eq!(answer(200, "").findings(), []);
    }

    #[test]
    fn the_clocks_are_compared() {
        for (ahead, side, is_problem) in [
            (1_000, "ahead of", true),
            (-1_000, "behind", true),
            (120, "ahead of", false),
        ] {
            let mut answer = answer(403, "<Error><Code>AccessDenied</Code></Error>");
            answer.date = Some(date::format(1_000_000_000 - ahead));
            let findings = answer.findings();
            let [clock, rest @ ..] = &findings[..] else {
                panic!("nothing")
            };
            assert!(clock.to_string().contains(side), "{clock}");
            // No finding is added for the consequences of a wrong clock.
            assert_eq!(
                (clock.is_problem(), rest.is_empty()),
                (is_problem, is_problem)
            );
        }
        let mut answer = answer(404, "");
        answer.date = None;
        assert_eq!(answer.findings(), []);
    }
}
