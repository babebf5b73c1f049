// SPDX-License-Identifier: Apache-2.0
//! Several sites of one edge.

mod isolation;
