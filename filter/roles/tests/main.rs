// SPDX-License-Identifier: Apache-2.0
//! The tests of the roles on a fake Envoy, with a module for each subject. The tests are one binary, which is linked
//! once.

mod bucket;
mod coalescing;
mod control;
mod headers;
mod own;
mod peers;
mod requests;
mod slices;
mod support;
