// SPDX-License-Identifier: Apache-2.0
//! Variants: the headers that a response varies with, and the variant that a request wants.

pub mod selection;
pub mod variance;
