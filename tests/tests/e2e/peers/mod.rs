// SPDX-License-Identifier: Apache-2.0
//! Several edges are one cache: the owner of a key fetches it for all of them.

mod failures;
mod fleet;
mod large;
mod protocols;
mod purges;
mod under_load;
mod world;
