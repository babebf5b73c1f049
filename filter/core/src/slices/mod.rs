// SPDX-License-Identifier: Apache-2.0
//! Slices: the pieces in which an object is stored that is larger than the largest stored object.
//!
//! EDGE knows a sliced object by its [`index`]. It decides by the index which bytes a client gets ([`selection`]), and
//! gives the slicer a [`plan`]. The slicer asks for the slices of the plan one after the other ([`asked`]), and makes
//! the response of them ([`assembly`]). The responses of one client's connection are bounded ([`connections`]). An edge
//! with peers requests each slice from the peer that owns it ([`peer_slice`]). ORIGIN requests each slice from the
//! origin, and judges the origin's answer ([`origin_answer`]).
//!
//! The number of a slice gives its bytes ([`grid`]). Its key has the version of the object, so slices of two versions
//! never meet. A restart or a hard purge takes the index away, and leaves the URL of the object (`large_url`).

pub mod asked;
pub mod assembly;
pub mod connections;
mod cutter;
pub mod grid;
pub mod index;
mod large_url;
mod multipart;
pub mod origin_answer;
pub mod peer_slice;
pub mod plan;
pub mod selection;
