// SPDX-License-Identifier: Apache-2.0
//! The forms of field values: lines, dates, structured fields, white space.

pub mod date;
pub mod field_value;
pub(crate) mod structured_field;
pub mod whitespace;
