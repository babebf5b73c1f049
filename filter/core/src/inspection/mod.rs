// SPDX-License-Identifier: Apache-2.0
//! Questions of the operator to the workers, and their answers.

pub mod decision;
pub mod decision_ring;
pub mod origin_errors;
pub mod recorded_url;
pub mod recorder;
pub mod recording;
pub mod url_table;
