// SPDX-License-Identifier: Apache-2.0
//! The JSON document in which SNS delivers over HTTP, and what of it is signed.

use jiff::Timestamp;
use serde::Deserialize;

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Kind {
    /// Something was published.
    Notification,
    /// Somebody subscribes the edge to a topic.
    SubscriptionConfirmation,
    /// The edge's subscription has ended.
    UnsubscribeConfirmation,
}

/// With which hash the text is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum SignatureVersion {
    /// SHA-1, what SNS does unless the topic says otherwise. What it is weak in, two texts with one hash of an
    /// attacker's choice, is of no use here: SNS adds what nobody can foresee.
    #[serde(rename = "1")]
    Sha1,
    /// SHA-256.
    #[serde(rename = "2")]
    Sha256,
}

/// A message. (What is not signed, or is of no use here, is left out.)
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Message {
    #[serde(rename = "Type")]
    pub kind: Kind,
    pub message: String,
    pub message_id: String,
    pub subject: Option<String>,
    pub topic_arn: String,
    pub timestamp: String,
    /// Only in confirmations, as the two fields that follow.
    pub token: Option<String>,
    #[serde(rename = "SubscribeURL")]
    pub subscribe_url: Option<String>,
    pub signature_version: SignatureVersion,
    pub signature: String,
    #[serde(rename = "SigningCertURL")]
    pub signing_cert_url: String,
}

impl Message {
    /// Reads what SNS posts.
    ///
    /// # Errors
    /// It is something else; says what is wrong.
    pub fn parse(body: &[u8]) -> Result<Self, String> {
        let message: Self = serde_json::from_slice(body).map_err(|error| {
            format!(
                "the body: {error}: expected a message of Amazon SNS, and RawMessageDelivery to be off, \
                 since raw messages carry no signature"
            )
        })?;
        let confirms = message.kind != Kind::Notification;
        let one_line = |text: &str| !text.contains(char::is_control);
        // NB: the signed text has a field's name in one line and its value from the next on. Were there lines in other
        // values than the message itself, one text could be read as two messages.
        for (name, value, required) in [
            ("MessageId", Some(message.message_id.as_str()), true),
            ("Subject", message.subject.as_deref(), false),
            ("Token", message.token.as_deref(), confirms),
            ("SubscribeURL", message.subscribe_url.as_deref(), confirms),
        ] {
            match value {
                Some(value) if !one_line(value) => {
                    return Err(format!("{name}: expected a text of one line"));
                }
                None if required => return Err(format!("{name}: missing")),
                _ => {}
            }
        }
        Ok(message)
    }

    /// When it was published.
    ///
    /// # Errors
    /// The field is no time.
    pub fn time(&self) -> Result<Timestamp, String> {
        let text = &self.timestamp;
        // NB: more spellings are times than SNS has, none of them with a line in it.
        text.parse().map_err(|_| {
            format!("Timestamp: {text:?}: expected a time such as 2012-05-02T00:54:06.655Z")
        })
    }

    /// The text that is signed: the fields that the kind has, by name.
    pub fn signed_text(&self) -> String {
        let only_notified = |value| (self.kind == Kind::Notification).then_some(value).flatten();
        let only_confirmed = |value| (self.kind != Kind::Notification).then_some(value).flatten();
        let kind = match self.kind {
            Kind::Notification => "Notification",
            Kind::SubscriptionConfirmation => "SubscriptionConfirmation",
            Kind::UnsubscribeConfirmation => "UnsubscribeConfirmation",
        };
        [
            ("Message", Some(self.message.as_str())),
            ("MessageId", Some(&self.message_id)),
            ("Subject", only_notified(self.subject.as_deref())),
            (
                "SubscribeURL",
                only_confirmed(self.subscribe_url.as_deref()),
            ),
            ("Timestamp", Some(&self.timestamp)),
            ("Token", only_confirmed(self.token.as_deref())),
            ("TopicArn", Some(&self.topic_arn)),
            ("Type", Some(kind)),
        ]
        .iter()
        .filter_map(|(name, value)| Some(format!("{name}\n{}\n", (*value)?)))
        .collect()
    }
}
