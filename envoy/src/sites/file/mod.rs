// SPDX-License-Identifier: Apache-2.0
//! Files of the user: values with line numbers, forms of fields, and problems.

mod document;
mod form;
mod problem;
mod yaml;

pub use document::Document;
pub use form::{Field, Form, Text};
pub use problem::{Problem, one_of, shown};
pub use yaml::{YamlFault, join, read};
