// SPDX-License-Identifier: Apache-2.0
//! Bodies that name the object and the response that they belong to, so that a test notices a wrong, mixed or cut
//! body.
//!
//! A body is a stamp (the response's sequence number, a hash of the path, the size) and bytes that follow from the
//! stamp.

use crate::chance::rng::mix;
use std::ops::Range;
use std::sync::OnceLock;

/// The length of the stamp at a body's start; smaller bodies cannot be made.
pub const STAMP: usize = 63;

/// Contents of a body's stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    /// The number of the response, over all paths of the server.
    pub sequence: u64,
    /// The size of the whole body.
    pub size: usize,
}

/// Makes the body of `size` bytes of response number `sequence` for `path`.
///
/// # Panics
/// When `size` leaves no room for the stamp.
#[must_use]
pub fn make(path: &str, sequence: u64, size: usize) -> Vec<u8> {
    part(path, sequence, size, 0..size)
}

/// Makes a part of the body of `size` bytes of response number `sequence` for `path`.
///
/// # Panics
/// When `size` leaves no room for the stamp.
#[must_use]
pub fn part(path: &str, sequence: u64, size: usize, bytes: Range<usize>) -> Vec<u8> {
    assert!(
        size >= STAMP,
        "a body has at least {STAMP} bytes, not {size}"
    );
    let stamp = format!(
        "sluice seq={sequence:012} key={:016x} size={size:012}\n",
        hash(path)
    );
    let mut part = Vec::with_capacity(bytes.len());
    part.extend(&stamp.as_bytes()[bytes.start.min(STAMP)..bytes.end.min(STAMP)]);
    let mut at = bytes.start.max(STAMP);
    while at < bytes.end {
        let offset = (at - STAMP) % PIECE;
        let begin = at - offset;
        let end = bytes.end.min(begin + PIECE);
        part.extend_from_slice(&piece(sequence, begin)[offset..end - begin]);
        at = end;
    }
    part
}

/// Bodies are made of pieces of one noise, each from a different offset: fast even in a debug build.
pub const PIECE: usize = 4096;

/// The piece that begins at byte `start`, a multiple of [`PIECE`], of the body with this `seed`.
///
/// # Panics
/// Never: the noise is longer than a piece.
#[must_use]
pub fn piece(seed: u64, start: usize) -> &'static [u8] {
    let noise = noise();
    let offset = mix(seed.wrapping_mul(0x0100_0000_01B3) ^ start as u64);
    let offset = usize::try_from(offset % (noise.len() - PIECE) as u64).unwrap();
    &noise[offset..offset + PIECE]
}

fn noise() -> &'static [u8] {
    static NOISE: OnceLock<Vec<u8>> = OnceLock::new();
    NOISE.get_or_init(|| {
        (0..64 * 1024 / 8)
            .flat_map(|n| mix(n).to_le_bytes())
            .collect()
    })
}

/// Checks a whole body.
///
/// # Errors
/// Says what is wrong with it: no stamp, another object's, cut, or changed bytes.
pub fn check(path: &str, body: &[u8]) -> Result<Stamp, String> {
    let stamp = check_start(path, body)?;
    if body.len() == stamp.size {
        Ok(stamp)
    } else {
        Err(format!(
            "{path}: {} bytes of a body of {}",
            body.len(),
            stamp.size
        ))
    }
}

/// Checks the received part of a body.
///
/// # Errors
/// Says what is wrong with it.
pub fn check_start(path: &str, start: &[u8]) -> Result<Stamp, String> {
    let stamp = start
        .get(..STAMP)
        .and_then(|stamp| std::str::from_utf8(stamp).ok());
    let stamp = stamp.ok_or_else(|| format!("{path}: no stamp in {:?}", preview(start)))?;
    let number = |from: usize, to: usize, radix| u64::from_str_radix(&stamp[from..to], radix).ok();
    let parsed = || {
        (stamp.starts_with("sluice seq=")).then_some(())?;
        Some((
            number(11, 23, 10)?,
            number(28, 44, 16)?,
            number(50, 62, 10)?,
        ))
    };
    let (sequence, key, size) =
        parsed().ok_or_else(|| format!("{path}: no stamp in {:?}", preview(start)))?;
    if key != hash(path) {
        return Err(format!(
            "{path}: the body of another object ({:?})",
            preview(start)
        ));
    }
    let size = usize::try_from(size).map_err(|e| e.to_string())?;
    if start.len() > size {
        return Err(format!("{path}: {} bytes of a body of {size}", start.len()));
    }
    let wanted = make(path, sequence, size);
    if start == &wanted[..start.len()] {
        return Ok(Stamp { sequence, size });
    }
    match start.iter().zip(&wanted).position(|(a, b)| a != b) {
        None => Ok(Stamp { sequence, size }),
        Some(at) => Err(format!("{path}: byte {at} of answer {sequence} differs")),
    }
}

/// The first bytes of a body, for a message.
#[must_use]
pub fn preview(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned()
}

/// FNV-1a.
pub(crate) fn hash(path: &str) -> u64 {
    path.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_body_checks() {
        let body = make("/a", 7, 1000);
        assert_eq!(
            check("/a", &body),
            Ok(Stamp {
                sequence: 7,
                size: 1000
            })
        );
    }

    #[test]
    fn a_part_is_cut_out_of_the_whole() {
        let body = make("/a", 7, 20_000);
        for (from, to) in [
            (0, 10),
            (10, 100),
            (63, 64),
            (5_000, 13_000),
            (19_999, 20_000),
        ] {
            assert_eq!(part("/a", 7, 20_000, from..to), &body[from..to]);
        }
    }

    #[test]
    fn cut_foreign_and_changed_bodies_are_seen() {
        let mut body = make("/a", 7, 1000);
        assert!(check("/a", &body[..999]).is_err());
        assert!(check_start("/a", &body[..999]).is_ok());
        assert!(check("/b", &body).is_err());
        body[500] ^= 1;
        assert!(check("/a", &body).is_err());
    }
}
