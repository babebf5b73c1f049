// SPDX-License-Identifier: Apache-2.0
//! The texts of the commands for people: tables, sizes, times.

pub mod explanation;
mod screen;
mod table;
mod units;

pub use screen::Screen;
pub use table::{TextTable, printable};
pub use units::{bytes, clock_time, date_time, duration, number, percentage, seconds, site_name};
