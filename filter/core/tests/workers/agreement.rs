// SPDX-License-Identifier: Apache-2.0
//! Values on which workers agree at their start.
#![allow(clippy::unwrap_used)]

use sluice_core::workers::WorkerId;
use sluice_core::workers::agreement::{NUMBER_ATTEMPTS, agree_on, take_number};
use sluice_core::workers::shared_value::SharedError;
use sluice_fake::FakeSharedData;

#[test]
fn each_worker_gets_a_number_of_its_own() {
    let data = FakeSharedData::default();
    assert_eq!(take_number(&data), Ok(WorkerId(1)));
    assert_eq!(take_number(&data), Ok(WorkerId(2)));
}

#[test]
fn a_worker_that_was_overtaken_takes_the_next_number() {
    let data = FakeSharedData::default();
    data.before_next_set(|data| {
        take_number(data).unwrap();
    });
    assert_eq!(take_number(&data), Ok(WorkerId(2)));
}

#[test]
fn a_number_is_tried_for_as_often_as_many_workers_start() {
    let data = FakeSharedData::default();
    data.lose_next(NUMBER_ATTEMPTS - 1);
    assert_eq!(take_number(&data), Ok(WorkerId(1)));
    data.lose_next(NUMBER_ATTEMPTS);
    assert_eq!(take_number(&data), Err(SharedError::Contended));
}

#[test]
fn all_agree_on_what_the_first_proposes() {
    let data = FakeSharedData::default();
    let first = agree_on(&data, "key", [1; 16]);
    assert_eq!(first, Ok([0x0101_0101_0101_0101; 2]));
    assert_eq!(agree_on(&data, "key", [2; 16]), first);
}

#[test]
fn nothing_is_agreed_on_if_the_host_refuses() {
    let data = FakeSharedData::default();
    data.fail_next(2);
    assert!(agree_on(&data, "key", [1; 16]).is_err());
    assert!(matches!(take_number(&data), Err(SharedError::Host(_))));
}
