// SPDX-License-Identifier: Apache-2.0
//! A text that is worth compressing.

use sluice_tests::chance::rng::Rng;
use std::fmt::Write as _;

/// Size of the text in bytes.
pub const SIZE: usize = 100_000;

/// A feed that compresses like text: objects of some words each, in random order.
pub fn feed() -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "river", "lamp", "orchard", "signal", "copper", "harbour", "meadow", "engine", "violet",
        "canvas", "thunder", "pepper", "glacier", "lantern", "saddle", "window",
    ];
    let mut rng = Rng::new(7);
    let mut text = String::from("[\n");
    while text.len() < SIZE {
        let (id, price) = (rng.below(1_000_000), rng.below(100_000));
        let mut words = || {
            (0..8)
                .map(|_| WORDS[rng.below(WORDS.len())])
                .collect::<Vec<_>>()
                .join(" ")
        };
        let (title, about) = (words(), words());
        let _ = writeln!(
            text,
            r#"  {{"id": {id}, "price": {price}, "title": "{title}", "about": "{about}"}},"#
        );
    }
    text.truncate(SIZE);
    text.into_bytes()
}
