// SPDX-License-Identifier: Apache-2.0
//! One edge with many sites. Each site serves its own objects, and no object of another site.

mod isolation;
mod twenty;
mod world;
