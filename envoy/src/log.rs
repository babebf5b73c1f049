// SPDX-License-Identifier: Apache-2.0
//! Messages of the entry point to its user.

use std::io::{self, Write};

/// Writes a line to standard error. Standard output belongs to the access log.
pub fn say(line: &str) {
    // Standard error may be closed; the failure cannot be reported then.
    let _ = write_line(&mut io::stderr(), line);
}

/// Writes a line by one call. Envoy writes to the same file, and its lines would otherwise appear between the
/// parts.
fn write_line(log: &mut impl Write, line: &str) -> io::Result<()> {
    log.write_all(format!("sluice: {line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts in which a log is written.
    #[derive(Default)]
    struct Parts(Vec<String>);

    impl Write for Parts {
        fn write(&mut self, part: &[u8]) -> io::Result<usize> {
            self.0.push(String::from_utf8_lossy(part).into_owned());
            Ok(part.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn no_line_of_another_process_comes_into_a_line() {
        let mut log = Parts::default();
        write_line(&mut log, "the bucket cannot be read").unwrap();
        assert_eq!(log.0, ["sluice: the bucket cannot be read\n"]);
    }
}
