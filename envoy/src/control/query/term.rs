// SPDX-License-Identifier: Apache-2.0
//! A term of a query: a field, an operator and a value.

use super::QueryError;
use super::field::{FIELDS, Field};
use crate::control::answers::Decision;

/// The operators, in the order of messages.
const OPERATORS: [(&str, Operator); 8] = [
    ("=", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("~", Operator::Contains),
    ("!~", Operator::NotContains),
    ("<", Operator::Less),
    ("<=", Operator::AtMost),
    (">", Operator::Greater),
    (">=", Operator::AtLeast),
];

/// The comparison of a field with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Contains,
    NotContains,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// A term.
#[derive(Clone, Debug)]
pub enum Term {
    /// The comparison of a text.
    Text(TextTerm),
    /// The comparison of a number.
    Number(NumberTerm),
}

/// The comparison of a text. An absent text is empty.
#[derive(Clone, Debug)]
pub struct TextTerm {
    read: fn(&Decision) -> Option<&str>,
    operator: Operator,
    value: String,
}

/// The comparison of a number. An absent number is unequal to every value, and neither less nor greater.
#[derive(Clone, Debug)]
pub struct NumberTerm {
    read: fn(&Decision) -> Option<u64>,
    operator: Operator,
    value: u64,
}

impl Term {
    /// Reads a term.
    ///
    /// # Errors
    /// The text is not a term, its field is unknown, or the operator or the value does not fit the field.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let form = || {
            QueryError(format!(
                "{text}: expected FIELD OPERATOR VALUE, such as site=shop"
            ))
        };
        let end = text.find(['=', '!', '<', '>', '~']).ok_or_else(form)?;
        let (name, rest) = text.split_at(end);
        let fitting = OPERATORS.iter();
        let fitting = fitting.filter(|(sign, _)| rest.starts_with(sign));
        let longest = fitting.max_by_key(|(sign, _)| sign.len());
        let (sign, operator) = *longest.ok_or_else(form)?;
        let value = rest.strip_prefix(sign).unwrap_or_default();
        if name.is_empty() || value.is_empty() {
            return Err(form());
        }
        let Some(field) = Field::find(name) else {
            let names = FIELDS.map(|(name, _)| name);
            let fields = alternatives(&names, "or");
            return Err(QueryError(format!(
                "\"{name}\" of {text}: expected a field: {fields}"
            )));
        };
        if !operator.fits(field) {
            let signs = OPERATORS
                .iter()
                .filter(|(_, operator)| operator.fits(field));
            let signs: Vec<_> = signs.map(|(sign, _)| *sign).collect();
            let signs = alternatives(&signs, "and");
            return Err(QueryError(format!(
                "{text}: the operators of {name} are {signs}"
            )));
        }
        match field {
            Field::Text(read) => Ok(Self::Text(TextTerm {
                read,
                operator,
                value: value.to_owned(),
            })),
            Field::Number(unit, read) => {
                let expected = || QueryError(format!("{text}: expected {}", unit.accepted()));
                let value = unit.parse(value).ok_or_else(expected)?;
                Ok(Self::Number(NumberTerm {
                    read,
                    operator,
                    value,
                }))
            }
        }
    }

    /// Whether the term applies to a request.
    pub fn matches(&self, decision: &Decision) -> bool {
        match self {
            Self::Text(term) => term.matches((term.read)(decision).unwrap_or_default()),
            Self::Number(term) => match (term.read)(decision) {
                Some(number) => term.matches(number),
                None => term.operator == Operator::NotEqual,
            },
        }
    }
}

impl TextTerm {
    fn matches(&self, text: &str) -> bool {
        let is_equal = text == self.value;
        let contains = text.contains(&self.value);
        match self.operator {
            Operator::Equal => is_equal,
            Operator::NotEqual => !is_equal,
            Operator::Contains => contains,
            Operator::NotContains => !contains,
            _ => false,
        }
    }
}

impl NumberTerm {
    fn matches(&self, number: u64) -> bool {
        match self.operator {
            Operator::Equal => number == self.value,
            Operator::NotEqual => number != self.value,
            Operator::Less => number < self.value,
            Operator::AtMost => number <= self.value,
            Operator::Greater => number > self.value,
            Operator::AtLeast => number >= self.value,
            Operator::Contains | Operator::NotContains => false,
        }
    }
}

impl Operator {
    fn fits(self, field: Field) -> bool {
        match self {
            Self::Equal | Self::NotEqual => true,
            Self::Contains | Self::NotContains => matches!(field, Field::Text(_)),
            _ => matches!(field, Field::Number(..)),
        }
    }
}

/// A list in a sentence.
fn alternatives(names: &[&str], joint: &str) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => {
            format!("{} {joint} {last}", others.join(", "))
        }
        names => names.join(""),
    }
}
