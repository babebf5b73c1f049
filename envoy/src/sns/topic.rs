// SPDX-License-Identifier: Apache-2.0
//! Topics of SNS, by their names (ARNs).

/// A standard topic of SNS. (S3 does not publish to FIFO topics, and FIFO topics do not deliver over HTTP.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The whole name.
    pub arn: String,
    /// The host of SNS in the topic's region.
    pub host: String,
    /// The domain of the topic's partition of AWS.
    pub domain: &'static str,
}

impl Topic {
    /// The texts that [`Topic::parse`] accepts, for error messages.
    pub const ACCEPTED: &str =
        "names of standard topics, arn:aws:sns:REGION:ACCOUNT:NAME, with commas between them";

    /// Reads `arn:PARTITION:sns:REGION:ACCOUNT:NAME`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let mut next = || parts.next();
        let (arn, partition, service) = (next()?, next()?, next()?);
        let (region, account, name) = (next()?, next()?, next()?);
        let domain = match partition {
            "aws" | "aws-us-gov" => "amazonaws.com",
            "aws-cn" => "amazonaws.com.cn",
            _ => return None,
        };
        let valid = (arn, service, next()) == ("arn", "sns", None)
            && is_word(region, 32, |byte| byte.is_ascii_lowercase())
            && account.len() == 12
            && account.bytes().all(|byte| byte.is_ascii_digit())
            && is_word(name, 256, |byte| byte == b'_' || byte.is_ascii_alphabetic());
        valid.then(|| Self {
            arn: text.to_owned(),
            host: format!("sns.{region}.{domain}"),
            domain,
        })
    }
}

/// Whether `text` has 1 to `most` bytes, each a digit, a hyphen or one that `is_other` accepts.
fn is_word(text: &str, most: usize, is_other: impl Fn(u8) -> bool) -> bool {
    (1..=most).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'-' || is_other(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_partition_has_its_hosts() {
        for (arn, host) in [
            (
                "arn:aws:sns:eu-central-1:123456789012:site",
                "sns.eu-central-1.amazonaws.com",
            ),
            (
                "arn:aws-us-gov:sns:us-gov-west-1:123456789012:Site_1-x",
                "sns.us-gov-west-1.amazonaws.com",
            ),
            (
                "arn:aws-cn:sns:cn-north-1:123456789012:site",
                "sns.cn-north-1.amazonaws.com.cn",
            ),
        ] {
            let topic = Topic::parse(arn).unwrap();
            assert_eq!((topic.arn.as_str(), topic.host.as_str()), (arn, host));
        }
    }

    #[test]
    fn nothing_else_is_a_topic() {
        for text in [
            "",
            "site",
            "arn:aws:sns:eu-central-1:123456789012",
            "arn:aws:sns:eu-central-1:123456789012:",
            "arn:aws:sns:eu-central-1:123456789012:site:c9135db0-26c4-47ec-8998-413945fb5a96",
            "arn:aws:sns:eu-central-1:123456789012:site.fifo",
            "arn:aws:sqs:eu-central-1:123456789012:site",
            "arn:aws:sns::123456789012:site",
            "arn:aws:sns:eu.example.com/:123456789012:site",
            "arn:aws:sns:EU-central-1:123456789012:site",
            "arn:aws:sns:eu-central-1:12345:site",
            "arn:other:sns:eu-central-1:123456789012:site",
            "arn:aws:sns:eu-central-1:123456789012:*",
            " arn:aws:sns:eu-central-1:123456789012:site",
        ] {
            assert_eq!(Topic::parse(text), None, "{text}");
        }
    }
}
