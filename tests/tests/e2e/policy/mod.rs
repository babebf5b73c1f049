// SPDX-License-Identifier: Apache-2.0
//! The rules of the policy for paths, and the replacement of a policy by a new one.

mod declared;
mod rules;
mod update;
