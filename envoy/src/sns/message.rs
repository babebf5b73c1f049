// SPDX-License-Identifier: Apache-2.0
//! The messages of SNS, JSON documents, and the part of them that is signed.

use jiff::Timestamp;
use serde::Deserialize;

use super::refusal::Refusal;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum MessageKind {
    /// A publisher has published an event.
    Notification,
    /// A user has asked for the edge's subscription to a topic.
    SubscriptionConfirmation,
    /// The edge's subscription has ended.
    UnsubscribeConfirmation,
}

/// The hash with which the text is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum SignatureVersion {
    /// SHA-1, the default of a topic. An attacker can create two texts with one SHA-1 hash, but this does not help
    /// here because SNS adds unpredictable values to each text.
    #[serde(rename = "1")]
    Sha1,
    /// SHA-256.
    #[serde(rename = "2")]
    Sha256,
}

/// A message, without the fields that are neither signed nor used.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Message {
    #[serde(rename = "Type")]
    pub kind: MessageKind,
    pub message: String,
    pub message_id: String,
    pub subject: Option<String>,
    pub topic_arn: String,
    pub timestamp: String,
    /// Present only in confirmations, like the URL.
    pub token: Option<String>,
    #[serde(rename = "SubscribeURL")]
    pub subscribe_url: Option<String>,
    pub signature_version: SignatureVersion,
    pub signature: String,
    #[serde(rename = "SigningCertURL")]
    pub signing_cert_url: String,
}

impl Message {
    /// Reads the body that SNS posts.
    ///
    /// # Errors
    /// The body is not a message of SNS; the refusal has the reason.
    pub fn parse(body: &[u8]) -> Result<Self, Refusal> {
        let message: Self = serde_json::from_slice(body).map_err(|error| {
            Refusal::malformed(format!(
                "the body: {error}: expected a message of Amazon SNS, and RawMessageDelivery to be off, \
                 since raw messages carry no signature"
            ))
        })?;
        let confirms = message.kind != MessageKind::Notification;
        let one_line = |text: &str| !text.contains(char::is_control);
        // NB: in the signed text a field's value follows its name on the next line. If values other than the
        // message itself could have several lines, one signed text could be read as two different messages.
        for (name, value, required) in [
            ("MessageId", Some(message.message_id.as_str()), true),
            ("Subject", message.subject.as_deref(), false),
            ("Token", message.token.as_deref(), confirms),
            ("SubscribeURL", message.subscribe_url.as_deref(), confirms),
        ] {
            match value {
                Some(value) if !one_line(value) => {
                    let reason = format!("{name}: expected a text of one line");
                    return Err(Refusal::malformed(reason));
                }
                None if required => return Err(Refusal::malformed(format!("{name}: missing"))),
                _ => {}
            }
        }
        Ok(message)
    }

    /// The time at which the message was published.
    ///
    /// # Errors
    /// The field is not a time.
    pub fn time(&self) -> Result<Timestamp, Refusal> {
        let text = &self.timestamp;
        // NB: this accepts more spellings than SNS writes, but none with several lines.
        text.parse().map_err(|_| {
            Refusal::malformed(format!(
                "Timestamp: {text:?}: expected a time such as 2012-05-02T00:54:06.655Z"
            ))
        })
    }

    /// The signed text: the fields of this kind of message, ordered by name.
    pub fn signed_text(&self) -> String {
        let (subject, url, token) = if self.kind == MessageKind::Notification {
            (self.subject.as_deref(), None, None)
        } else {
            (None, self.subscribe_url.as_deref(), self.token.as_deref())
        };
        let kind = match self.kind {
            MessageKind::Notification => "Notification",
            MessageKind::SubscriptionConfirmation => "SubscriptionConfirmation",
            MessageKind::UnsubscribeConfirmation => "UnsubscribeConfirmation",
        };
        [
            ("Message", Some(self.message.as_str())),
            ("MessageId", Some(&self.message_id)),
            ("Subject", subject),
            ("SubscribeURL", url),
            ("Timestamp", Some(&self.timestamp)),
            ("Token", token),
            ("TopicArn", Some(&self.topic_arn)),
            ("Type", Some(kind)),
        ]
        .iter()
        .filter_map(|(name, value)| Some(format!("{name}\n{}\n", (*value)?)))
        .collect()
    }
}
