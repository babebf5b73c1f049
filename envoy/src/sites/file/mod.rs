// SPDX-License-Identifier: Apache-2.0
//! Files of the user's: their values with lines, the forms of their fields, and what is wrong with them.

mod document;
mod form;
mod problem;
mod yaml;

pub use document::Document;
pub use form::{Field, Form, Text};
pub use problem::{Problem, one_of, shown};
pub use yaml::{join, read};
