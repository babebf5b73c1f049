// SPDX-License-Identifier: Apache-2.0
//! Only clients that satisfy the rules of a site get a byte of it.

mod addresses;
mod forward;
mod fuzz;
mod passwords;
mod protocols;
mod recipes;
mod reload;
mod secrets;
mod signatures;
mod tokens;
pub mod world;
