// SPDX-License-Identifier: Apache-2.0
//! Fuzzes messages between the filter's roles and workers. Bytes that another filter, an origin or a client has made
//! are never accepted as a message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_core::inspection::Question;
use sluice_core::workers::message::Message;
use sluice_store::Entry;
use sluice_store::{Link, Secrets};

/// Secrets that the fuzzer does not guess.
const SECRETS: Secrets = Secrets {
    process: 0x5ec2_e700_0bad_cafe,
    vm: 0x0bad_cafe_5ec2_e700,
};

fuzz_target!(|input: &[u8]| {
    assert_eq!(Link::decode(input, SECRETS), None);
    if let Some(message) = Message::decode(input) {
        assert_eq!(Message::decode(&message.encode()), Some(message));
    }
    if let Ok(text) = std::str::from_utf8(input)
        && let Ok(question) = Question::parse(text)
    {
        assert_eq!(Question::parse(&question.to_string()), Ok(question));
    }
    if let Ok(text) = std::str::from_utf8(input)
        && let Some(entry) = Entry::parse(text)
    {
        let written = entry.encode();
        assert_eq!(Entry::parse(&written), Some(entry));
    }
});
