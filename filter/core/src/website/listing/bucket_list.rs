// SPDX-License-Identifier: Apache-2.0
//! A bucket's answer to `ListObjectsV2`.

use super::xml::{Malformed, Reader, Token};
use crate::http::url::escaping::form_decoded;

/// A page of a bucket's objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketList {
    /// The objects of the directory.
    pub objects: Vec<ListedObject>,
    /// The beginnings that the keys in each directory below it share. Each ends in a slash.
    pub directories: Vec<String>,
    /// Whether more follow.
    pub is_truncated: bool,
    /// The token of the next page, if more follow.
    pub next_token: Option<String>,
}

/// An object in a bucket's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedObject {
    /// The key.
    pub key: String,
    /// Size in bytes.
    pub size: u64,
    /// The time of its last change, such as `2026-01-31T23:59:59.000Z`.
    pub modified: String,
}

/// The reason why an answer cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListError {
    /// An incomplete document, or parts that no bucket sends.
    Malformed,
    /// Another document, or a field that is missing or not valid.
    Foreign,
    /// An answer about another directory.
    OtherPrefix,
}

impl ListError {
    /// A text for the operator.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Malformed => "it is not complete XML",
            Self::Foreign => "it is not a ListBucketResult, or one of its fields is not valid",
            Self::OtherPrefix => "it is about another prefix",
        }
    }
}

impl From<Malformed> for ListError {
    fn from(Malformed: Malformed) -> Self {
        Self::Malformed
    }
}

/// The fields of a document that has not ended.
#[derive(Default)]
struct Draft {
    list: BucketList,
    prefix: String,
    is_truncated: Option<bool>,
    /// Whether names are escaped like the fields of a form, as a question can ask for.
    is_encoded: bool,
    object: Option<DraftObject>,
}

#[derive(Default)]
struct DraftObject {
    key: Option<String>,
    size: Option<u64>,
    modified: Option<String>,
}

impl BucketList {
    /// Reads the answer for the keys that begin with `prefix`.
    ///
    /// # Errors
    /// The answer cannot be read, or is for another prefix.
    pub fn parse(document: &[u8], prefix: &str) -> Result<Self, ListError> {
        let mut reader = Reader::new(document).ok_or(ListError::Malformed)?;
        let mut draft = Draft::default();
        let mut path: Vec<&str> = Vec::new();
        let mut text = String::new();
        while let Some(token) = reader.next()? {
            match token {
                Token::Start(name) => {
                    path.push(name);
                    text.clear();
                    draft.begin(&path)?;
                }
                Token::Text(part) => text.push_str(&part),
                Token::End => {
                    draft.end(&path, &text)?;
                    path.pop();
                    text.clear();
                }
            }
        }
        draft.finish(prefix)
    }
}

const ROOT: &str = "ListBucketResult";

impl Draft {
    fn begin(&mut self, path: &[&str]) -> Result<(), ListError> {
        match path {
            [root] if *root != ROOT => Err(ListError::Foreign),
            [_, "Contents"] => {
                self.object = Some(DraftObject::default());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Handles the end of the element at `path`, whose last text is `text`.
    fn end(&mut self, path: &[&str], text: &str) -> Result<(), ListError> {
        match path {
            [_, "Prefix"] => text.clone_into(&mut self.prefix),
            [_, "IsTruncated"] => self.is_truncated = Some(boolean(text)?),
            [_, "NextContinuationToken"] => self.list.next_token = Some(text.to_owned()),
            [_, "EncodingType"] => self.is_encoded = text == "url",
            [_, "CommonPrefixes", "Prefix"] => self.list.directories.push(text.to_owned()),
            [_, "Contents"] => {
                let object = self.object.take().and_then(DraftObject::complete);
                self.list.objects.push(object.ok_or(ListError::Foreign)?);
            }
            [_, "Contents", field] => {
                let object = self.object.as_mut().ok_or(ListError::Foreign)?;
                object.set(field, text)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(mut self, prefix: &str) -> Result<BucketList, ListError> {
        if self.is_encoded {
            self.decode().ok_or(ListError::Foreign)?;
        }
        if self.prefix != prefix {
            return Err(ListError::OtherPrefix);
        }
        let mut list = self.list;
        list.is_truncated = self.is_truncated.ok_or(ListError::Foreign)?;
        list.next_token = list.next_token.filter(|_| list.is_truncated);
        let keys = list.objects.iter().map(|object| &object.key);
        let mut keys = keys.chain(&list.directories);
        if !keys.all(|key| key.starts_with(prefix)) {
            return Err(ListError::OtherPrefix);
        }
        if !list
            .directories
            .iter()
            .all(|directory| directory.ends_with('/'))
        {
            return Err(ListError::Foreign);
        }
        Ok(list)
    }

    /// Decodes the names. `None` if one is not UTF-8.
    fn decode(&mut self) -> Option<()> {
        let keys = self.list.objects.iter_mut().map(|object| &mut object.key);
        let names = keys.chain(&mut self.list.directories);
        for name in names.chain([&mut self.prefix]) {
            *name = form_decoded(name)?;
        }
        Some(())
    }
}

impl DraftObject {
    fn set(&mut self, field: &str, text: &str) -> Result<(), ListError> {
        match field {
            "Key" => self.key = Some(text.to_owned()),
            "Size" => self.size = Some(text.parse().map_err(|_| ListError::Foreign)?),
            "LastModified" if is_time(text) => self.modified = Some(text.to_owned()),
            "LastModified" => return Err(ListError::Foreign),
            _ => {}
        }
        Ok(())
    }

    fn complete(self) -> Option<ListedObject> {
        Some(ListedObject {
            key: self.key?,
            size: self.size?,
            modified: self.modified?,
        })
    }
}

fn boolean(text: &str) -> Result<bool, ListError> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(ListError::Foreign),
    }
}

/// Whether a text has the characters of a time (RFC 3339).
fn is_time(text: &str) -> bool {
    let fits =
        |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b':' | b'T' | b'.' | b'Z' | b'+');
    (20..=40).contains(&text.len()) && text.bytes().all(fits)
}
