// SPDX-License-Identifier: Apache-2.0
//! Tables of figures.

use serde_json::{Value, json};

/// A table, of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// The first column says what a row is about.
    pub fn new<const N: usize>(
        columns: [&str; N],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        Self {
            columns: columns.map(str::to_owned).to_vec(),
            rows: rows.into_iter().collect(),
        }
    }

    /// For the results' file.
    pub fn json(&self) -> Value {
        json!({"columns": self.columns, "rows": self.rows})
    }
}
