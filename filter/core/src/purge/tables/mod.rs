// SPDX-License-Identifier: Apache-2.0
//! The tables in which a worker looks up what is purged.

pub(in crate::purge) mod generations;
pub(in crate::purge) mod site_purges;
pub(in crate::purge) mod table;
pub(in crate::purge) mod url_part;
