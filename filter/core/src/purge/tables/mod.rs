// SPDX-License-Identifier: Apache-2.0
//! The tables of purges that a worker reads.

pub(in crate::purge) mod generations;
pub(in crate::purge) mod site_purges;
pub(in crate::purge) mod table;
pub(in crate::purge) mod url_part;
