// SPDX-License-Identifier: Apache-2.0
//! The terminal on standard output.

use std::io::{self, Write as _};

use rustix::stdio::stdout;
use rustix::termios::{isatty, tcgetwinsize};

/// The control sequences that move the cursor to the first place and remove all text (ECMA-48: CUP, ED).
const CLEAR: &str = "\x1b[H\x1b[J";

/// A terminal whose content is replaced as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Screen;

impl Screen {
    /// The terminal, if standard output is one.
    pub fn find() -> Option<Self> {
        isatty(stdout()).then_some(Self)
    }

    /// Shows the beginning of a text: as many lines and columns as the terminal has.
    ///
    /// # Errors
    /// The terminal has gone.
    pub fn show(self, text: &str) -> io::Result<()> {
        let size = tcgetwinsize(stdout())?;
        let (rows, columns) = (usize::from(size.ws_row), usize::from(size.ws_col));
        let mut out = io::stdout().lock();
        write!(out, "{CLEAR}{}", fitting(text, rows, columns))?;
        out.flush()
    }
}

/// The part of a text that fits. A terminal that does not say its size has room for everything.
fn fitting(text: &str, rows: usize, columns: usize) -> String {
    if rows == 0 || columns == 0 {
        return text.to_owned();
    }
    let lines = text.lines().take(rows.saturating_sub(1));
    lines
        .map(|line| line.chars().take(columns).chain(['\n']).collect::<String>())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_to_the_terminal() {
        assert_eq!(fitting("abcd\nef\ngh\n", 3, 3), "abc\nef\n");
        assert_eq!(fitting("abcd\n", 0, 0), "abcd\n");
    }
}
