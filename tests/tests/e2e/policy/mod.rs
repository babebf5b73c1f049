// SPDX-License-Identifier: Apache-2.0
//! Rules of the policy for paths, and updates of the policy under load.

mod rules;
mod update;
