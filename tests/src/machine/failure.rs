// SPDX-License-Identifier: Apache-2.0
//! Reports each failure at once: the test runner reports all of them after the last test, a quarter of an hour later.

use std::io::{self, Write as _};
use std::panic;
use std::sync::Once;
use std::thread;

/// The most characters of a message, which may have the log of a server in it.
const LONGEST: usize = 400;

/// Makes each panic also write a line to stderr at once.
pub fn say_at_once() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let test = thread::current();
            let line = line(test.name().unwrap_or("a thread"), &panic.to_string());
            // NB: not `eprintln`, because the runner keeps its output until the end. A failure to write does not
            // matter.
            let _ = io::stderr().write_all(line.as_bytes());
            usual(panic);
        }));
    });
}

fn line(test: &str, panic: &str) -> String {
    let words = panic.split_whitespace().collect::<Vec<_>>().join(" ");
    let said: String = words.chars().take(LONGEST).collect();
    format!("{test} {said}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_and_not_a_whole_log() {
        let log = "sluice: ready\n".repeat(1_000);
        let said = line(
            "purge::a",
            &format!("panicked at lib.rs:1:2:\nleft: 1\n right: 2\n{log}"),
        );
        let reason = "purge::a panicked at lib.rs:1:2: left: 1 right: 2 sluice: ready";
        assert!(said.starts_with(reason), "{said}");
        assert_eq!(said.lines().count(), 1);
        assert!(said.len() < 450, "{said}");
    }
}
