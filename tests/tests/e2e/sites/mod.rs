// SPDX-License-Identifier: Apache-2.0
//! One edge with many sites: each site serves its own objects, and no object of another site.

mod isolation;
mod page;
mod twenty;
mod world;
