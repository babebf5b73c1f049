// SPDX-License-Identifier: Apache-2.0
//! The edge's image: a registry, and its containers.

pub mod architecture;
pub mod container;
pub mod guard;
pub mod registry;
