// SPDX-License-Identifier: Apache-2.0
//! The facts about requests that a worker records for questions: its last decisions, its heaviest URLs, and the last
//! error of each origin.

pub mod decision;
pub mod decision_ring;
pub mod origin_errors;
pub mod recorded_url;
pub mod recorder;
pub mod recording;
pub mod url_table;
