// SPDX-License-Identifier: Apache-2.0
//! A bucket as the origin.

mod documents;
mod errors;
mod events;
mod listings;
mod second_origin;
