// SPDX-License-Identifier: Apache-2.0
//! Tables in which numbers are aligned to the right.

use comfy_table::{CellAlignment, Table, presets::NOTHING};

/// A table without lines.
#[derive(Debug)]
pub struct TextTable {
    table: Table,
    right: Vec<usize>,
}

impl TextTable {
    /// A table with these columns. The name of a column that is aligned to the right begins with `>`.
    pub fn new(columns: &[&str]) -> Self {
        let mut table = Table::new();
        table.load_style(NOTHING);
        table.set_header(columns.iter().map(|name| name.trim_start_matches('>')));
        let is_right = |(_, name): &(usize, &&str)| name.starts_with('>');
        let right = columns.iter().enumerate().filter(is_right);
        Self {
            table,
            right: right.map(|(column, _)| column).collect(),
        }
    }

    /// Adds a row.
    pub fn add_row<const N: usize>(&mut self, cells: [String; N]) {
        self.add_cells(cells.into());
    }

    /// Adds a row, which has a cell for each column.
    pub fn add_cells(&mut self, cells: Vec<String>) {
        let cells = cells.iter().map(|cell| printable(cell));
        self.table.add_row(cells);
    }

    /// The lines of the table. The first one has the names of the columns.
    pub fn text(mut self) -> String {
        for column in self.right {
            if let Some(column) = self.table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for column in self.table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        let lines = self.table.lines();
        lines
            .map(|line| line.trim_end().to_owned() + "\n")
            .collect()
    }
}

/// A text of a client without characters that control a terminal.
pub fn printable(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_aligned_to_the_right_and_nothing_controls_the_terminal() {
        let mut table = TextTable::new(&["SITE", ">REQ/S", "PATH"]);
        table.add_row(["a".into(), "1234.5".into(), "/x\u{1b}[2J".into()]);
        table.add_row(["assets".into(), "3".into(), "/".into()]);
        let expected = "SITE     REQ/S  PATH\na       1234.5  /x\u{fffd}[2J\nassets       3  /\n";
        assert_eq!(table.text(), expected);
    }
}
