// SPDX-License-Identifier: Apache-2.0
//! The standalone edge: its settings, Envoy's configuration, and what starts and stops it all.

mod admin;
mod ca_bundle;
pub mod cache_folder;
mod child;
pub mod demo;
mod early_deaths;
mod environment;
pub mod free_space;
pub mod health;
pub mod http;
mod joining_thread;
pub mod journal;
mod keeper;
pub mod local_socket;
pub mod machine;
pub mod origin;
pub mod policy_document;
mod private;
mod random;
pub mod render;
pub mod reserve;
pub mod run;
pub mod setting_docs;
pub mod settings;
pub mod shortage;
pub mod size;
pub mod sns;
