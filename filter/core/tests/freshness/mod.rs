// SPDX-License-Identifier: Apache-2.0
//! The storage of responses, and their lifetime.

mod bounds;
mod decisions;
mod oracle;
