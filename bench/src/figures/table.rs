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
    /// Makes a table. `columns` are separated by `|`; the first one is the subject of a row.
    ///
    /// # Panics
    /// When a row has more cells than there are columns, or fewer.
    pub fn new(columns: &str, rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        let columns: Vec<_> = columns
            .split('|')
            .map(|column| column.trim().to_owned())
            .collect();
        let rows: Vec<_> = rows.into_iter().collect();
        assert!(
            rows.iter().all(|row| row.len() == columns.len()),
            "{columns:?}: {rows:?}"
        );
        Self { columns, rows }
    }

    /// The table for the file of results.
    pub fn json(&self) -> Value {
        json!({"columns": self.columns, "rows": self.rows})
    }
}
