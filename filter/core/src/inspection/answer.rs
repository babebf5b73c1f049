// SPDX-License-Identifier: Apache-2.0
//! The answer of one worker, within a bound.

use serde_json::{Map, Value};

/// Maximum size of an answer in bytes of JSON. All answers to a question are in memory at one time.
pub const MOST_ANSWER_BYTES: usize = 256 << 10;

/// The member that says that the answer lacks something.
const CUT: &str = "\"cut\":true";

/// The answer of one worker: the members of a JSON object, without its braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer(String);

impl Answer {
    /// An answer with these members. If they are too large, the answer only says that it is cut.
    pub fn of(members: &Map<String, Value>) -> Self {
        let members = members
            .iter()
            .map(|(name, value)| format!("{}:{value}", Value::from(name.as_str())));
        let text = members.collect::<Vec<_>>().join(",");
        match text.len() > MOST_ANSWER_BYTES {
            true => Self(CUT.to_owned()),
            false => Self(text),
        }
    }

    /// An answer with one member of this name: a list of as many items as the bound allows.
    pub fn list(name: &str, items: impl IntoIterator<Item = Value>) -> Self {
        let mut text = format!("{}:[", Value::from(name));
        // The end of the list and the mark of a cut always fit.
        let most = MOST_ANSWER_BYTES - CUT.len() - "],".len();
        let mut cut = "";
        for (position, item) in items.into_iter().enumerate() {
            let item = item.to_string();
            if text.len() + item.len() + 1 > most {
                cut = ",";
                break;
            }
            if position > 0 {
                text.push(',');
            }
            text.push_str(&item);
        }
        text.push(']');
        if !cut.is_empty() {
            text.push_str(cut);
            text.push_str(CUT);
        }
        Self(text)
    }

    /// An answer from the text of [`Answer::as_str`], which another worker has sent.
    pub fn received(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The members as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The answer as an object, with the number of its worker.
    pub(super) fn of_worker(&self, number: u16) -> String {
        let comma = if self.0.is_empty() { "" } else { "," };
        format!("{{\"worker\":{number}{comma}{}}}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(answer: &Answer) -> Value {
        serde_json::from_str(&answer.of_worker(3)).unwrap()
    }

    #[test]
    fn an_answer_is_an_object_with_its_worker() {
        let none = Answer::of(&Map::new());
        assert_eq!(object(&none), json!({"worker": 3}));
        let members = json!({"hot": null, "a\"b": [1]});
        let answer = Answer::of(members.as_object().unwrap());
        assert_eq!(
            object(&answer),
            json!({"worker": 3, "hot": null, "a\"b": [1]})
        );
        assert_eq!(Answer::received(answer.as_str()), answer);
        let list = Answer::list("flights", [json!({"key": "/a"}), json!(2)]);
        let expected = json!({"worker": 3, "flights": [{"key": "/a"}, 2]});
        assert_eq!(object(&list), expected);
        let empty = Answer::list("flights", []);
        assert_eq!(object(&empty), json!({"worker": 3, "flights": []}));
    }

    #[test]
    fn a_list_that_is_too_long_is_cut_and_says_so() {
        let item = json!("x".repeat(1_000));
        let answer = Answer::list("urls", (0..10_000).map(|_| item.clone()));
        assert!(answer.as_str().len() <= MOST_ANSWER_BYTES);
        let object = object(&answer);
        assert_eq!(object["cut"], true);
        assert_eq!(object["urls"].as_array().unwrap().len(), 261);
    }

    #[test]
    fn members_that_are_too_large_are_left_out() {
        let members = json!({"x": "y".repeat(MOST_ANSWER_BYTES)});
        let answer = Answer::of(members.as_object().unwrap());
        assert_eq!(object(&answer), json!({"worker": 3, "cut": true}));
    }
}
