// SPDX-License-Identifier: Apache-2.0
//! Purges: the calls, and the responses that they cover.

mod calls;
mod feed;
mod table;
