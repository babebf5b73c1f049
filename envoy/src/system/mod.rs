// SPDX-License-Identifier: Apache-2.0
//! The functions of the operating system for the entry point: processes, threads, limits, private files, random
//! names, and the service manager.

mod cgroup;
pub mod child;
pub mod joining_thread;
pub mod machine;
pub mod private;
pub mod random;
pub mod service_manager;

pub use machine::Machine;
