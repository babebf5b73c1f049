// SPDX-License-Identifier: Apache-2.0
//! The orders of callers: purge calls and notifications of buckets, with the URLs that they name.

pub(in crate::purge) mod caller;
pub(in crate::purge) mod notification;
pub(in crate::purge) mod object;
pub(in crate::purge) mod order;
pub(in crate::purge) mod order_error;
pub(in crate::purge) mod url;
