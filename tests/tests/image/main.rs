// SPDX-License-Identifier: Apache-2.0
//! The images that `make release` builds, run and read as an operator pulls them. The tests need root: see
//! `sluice_tests::image::container`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod documents;
mod edge;
mod programs;
mod release;
