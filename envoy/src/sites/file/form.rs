// SPDX-License-Identifier: Apache-2.0
//! The forms of values in the file of sites. Each form has a description in words, a check, and a JSON Schema.

use serde_json::{Map, Value, json};

use super::problem::{one_of, shown};
use super::yaml::join;

/// A field of a mapping.
#[derive(Debug)]
pub struct Field {
    /// The field's name.
    pub name: &'static str,
    /// The meaning, for the schema and the documentation.
    pub about: &'static str,
    /// Whether the field is required.
    pub required: bool,
    /// The form of the value.
    pub form: Form,
}

/// The form of a value.
#[derive(Debug)]
pub enum Form {
    /// A text.
    Text(Text),
    /// `true` or `false`.
    Flag,
    /// A whole number of this range, which includes both bounds.
    Whole(u64, u64),
    /// A list of at least one item.
    List(&'static Form),
    /// A mapping with these fields.
    Mapping(&'static [Field]),
    /// One of several forms.
    Either(&'static [Form]),
    /// A part of a policy's document, by its name among the schema's definitions. The filter's own reader checks
    /// it.
    Policy(&'static str),
}

/// The form of a text.
#[derive(Debug)]
pub struct Text {
    /// The accepted texts, in words.
    pub expected: &'static str,
    /// A regular expression for the schema, which may accept more texts than the check.
    pub pattern: &'static str,
    /// Whether a text is accepted.
    pub accepts: fn(&str) -> bool,
    /// Whether the value may be a secret by mistake. No message repeats such a value.
    pub hidden: bool,
}

impl Form {
    /// Adds the problems of a value to `problems`: the path of the field, and the message.
    pub fn check(&self, value: &Value, path: &str, problems: &mut Vec<(String, String)>) {
        match self {
            Self::Mapping(fields) => match value.as_object() {
                Some(object) => check_fields(fields, object, path, problems),
                None => self.refuse(value, path, problems),
            },
            Self::List(item) => match value.as_array().filter(|items| !items.is_empty()) {
                Some(items) => {
                    for (index, value) in items.iter().enumerate() {
                        item.check(value, &format!("{path}[{index}]"), problems);
                    }
                }
                None => self.refuse(value, path, problems),
            },
            Self::Either(forms) => match forms.iter().find(|form| form.suits(value)) {
                Some(form) => form.check(value, path, problems),
                None => self.refuse(value, path, problems),
            },
            Self::Text(Text { accepts, .. }) if value.as_str().is_some_and(accepts) => {}
            Self::Flag if value.is_boolean() => {}
            Self::Whole(least, most)
                if value
                    .as_u64()
                    .is_some_and(|number| (*least..=*most).contains(&number)) => {}
            Self::Policy(_) if value.is_object() => {}
            _ => self.refuse(value, path, problems),
        }
    }

    /// Whether a value is probably meant to have this form. This selects one of several forms.
    fn suits(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Text(_), Value::String(_))
            | (Self::Policy(_), Value::Object(_))
            | (Self::List(_), Value::Array(_)) => true,
            (Self::Mapping(fields), Value::Object(object)) => {
                let known = |name: &String| fields.iter().any(|field| field.name == name);
                object.keys().any(known)
            }
            _ => false,
        }
    }

    fn refuse(&self, value: &Value, path: &str, problems: &mut Vec<(String, String)>) {
        let hidden = matches!(self, Self::Text(Text { hidden: true, .. }));
        let message = if hidden {
            format!("expected {}", self.expected())
        } else {
            format!("{}: expected {}", shown(value), self.expected())
        };
        problems.push((path.to_owned(), message));
    }

    /// The accepted values, in words.
    pub fn expected(&self) -> String {
        match self {
            Self::Text(text) => text.expected.to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Self::List(item) => format!("a list with at least one item, each {}", item.expected()),
            Self::Mapping(fields) => {
                let names: Vec<_> = fields.iter().map(|field| field.name).collect();
                format!("a mapping with {}", one_of(&names))
            }
            Self::Either(forms) => {
                let forms: Vec<_> = forms.iter().map(Self::expected).collect();
                forms.join("; or ")
            }
            Self::Policy(_) => "a mapping with sections of the policy".to_owned(),
        }
    }

    /// The JSON Schema of the accepted values.
    pub fn schema(&self) -> Value {
        match self {
            Self::Text(text) => json!({"type": "string", "pattern": text.pattern}),
            Self::Flag => json!({"type": "boolean"}),
            Self::Whole(least, most) => {
                json!({"type": "integer", "minimum": least, "maximum": most})
            }
            Self::List(item) => json!({"type": "array", "items": item.schema(), "minItems": 1}),
            Self::Mapping(fields) => mapping_schema(fields),
            Self::Either(forms) => {
                let forms: Vec<_> = forms.iter().map(Self::schema).collect();
                json!({"oneOf": forms})
            }
            Self::Policy(name) => json!({"$ref": format!("#/$defs/{name}")}),
        }
    }
}

fn check_fields(
    fields: &[Field],
    object: &Map<String, Value>,
    path: &str,
    problems: &mut Vec<(String, String)>,
) {
    let names: Vec<_> = fields.iter().map(|field| field.name).collect();
    for (name, value) in object {
        let path = join(path, name);
        match fields.iter().find(|field| field.name == name) {
            Some(field) => field.form.check(value, &path, problems),
            None => {
                let message = format!("unknown field, expected {}", one_of(&names));
                problems.push((path, message));
            }
        }
    }
    for field in fields.iter().filter(|field| field.required) {
        if !object.contains_key(field.name) {
            let message = format!("required, but missing: expected {}", field.form.expected());
            problems.push((join(path, field.name), message));
        }
    }
}

fn mapping_schema(fields: &[Field]) -> Value {
    let mut properties = Map::new();
    for field in fields {
        let mut schema = field.form.schema();
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("description".to_owned(), field.about.into());
        }
        properties.insert(field.name.to_owned(), schema);
    }
    let required = fields.iter().filter(|field| field.required);
    let required: Vec<_> = required.map(|field| field.name).collect();
    let mut schema =
        json!({"type": "object", "additionalProperties": false, "properties": properties});
    if let (Some(schema), false) = (schema.as_object_mut(), required.is_empty()) {
        schema.insert("required".to_owned(), required.into());
    }
    schema
}
