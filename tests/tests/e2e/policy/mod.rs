// SPDX-License-Identifier: Apache-2.0
//! What the policy says of paths, and how a new policy takes the place of the old one.

mod rules;
mod update;
