// SPDX-License-Identifier: Apache-2.0
//! Header lines that a request repeats. HTTP/2 compresses a repeated line to one byte (RFC 7541, 6.1), but the edge
//! holds each whole line several times while the request waits. Clients have no reason to send a line twice.

/// Number of lines up to which a request is not checked.
const FEW_LINES: usize = 32;
/// Greatest number of lines that are equal to an earlier one.
const MOST_LINES: usize = 16;
/// Greatest size of the names and values of these lines together, in bytes.
const MOST_BYTES: usize = 1_024;

/// Whether a request repeats more lines than a client has reason to.
pub fn repeats_too_much<'a>(lines: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone) -> bool {
    if lines.clone().nth(FEW_LINES).is_none() {
        return false;
    }
    let (mut repeated, mut bytes) = (0, 0);
    for (place, (name, value)) in lines.clone().enumerate() {
        let mut earlier = lines.clone().take(place);
        if earlier.any(|line| line == (name, value)) {
            repeated += 1;
            bytes += name.len() + value.len();
        }
    }
    repeated > MOST_LINES || bytes > MOST_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(lines: &[(Vec<u8>, Vec<u8>)]) -> bool {
        repeats_too_much(lines.iter().map(|(name, value)| (&name[..], &value[..])))
    }

    fn line(name: &str, bytes: usize) -> (Vec<u8>, Vec<u8>) {
        (name.into(), vec![b'v'; bytes])
    }

    #[test]
    fn a_line_may_be_repeated_a_few_times() {
        let distinct: Vec<_> = (0..80)
            .map(|each| line(&format!("x-{each}"), 300))
            .collect();
        assert!(!refused(&distinct));
        assert!(!refused(&vec![line("x-a", 2_000); FEW_LINES]));
        assert!(refused(&vec![line("x-a", 1); FEW_LINES + 1]));
        let short = [&distinct[..], &vec![line("x-0", 1); MOST_LINES + 1]].concat();
        assert!(!refused(&short));
        let shorter = [&distinct[..], &vec![line("x-0", 1); MOST_LINES + 2]].concat();
        assert!(refused(&shorter));
        assert!(refused(&[&distinct[..], &distinct[..4]].concat()));
    }
}
