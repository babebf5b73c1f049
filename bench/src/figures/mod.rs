// SPDX-License-Identifier: Apache-2.0
//! Processing of measurements: distributions, figures of rounds, and conclusions.

pub mod aim;
mod conclusions;
mod distribution;
pub mod format;
mod rounds;
mod table;

pub use conclusions::Conclusions;
pub use distribution::{Distribution, PERCENTILES, interval_log};
pub use rounds::{Figures, Rounds, Row, in_turn};
pub use table::Table;
