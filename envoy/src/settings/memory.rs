// SPDX-License-Identifier: Apache-2.0
//! The division of the memory: the part of a cache on a tmpfs, the number of workers, the hot copies of each
//! worker, and the bound on Envoy's heap.

use super::Runtime;
use super::cache::{Cache, HotTier};
use super::environment::Environment;
use super::problem::SettingProblem;
use crate::system::Machine;
use sluice_core::size::{MIB, Size};

/// The bytes of memory for each worker, unless `SLUICE_CONCURRENCY` sets the number of workers.
const OF_A_WORKER: u64 = 128 * MIB;
/// The part of the memory for all hot copies together, unless `SLUICE_HOT_BYTES` sets the bytes of each worker.
const HOT_PART: u64 = 8;
/// Bound on the hot copies of a worker, unless `SLUICE_HOT_BYTES` sets another one.
const HOT_BYTES: u64 = 32 * MIB;
/// The least heap with which Envoy can serve, in bytes: for Envoy and the filter's module, and for each worker. V8
/// needs 44 MiB to compile the module, and an idle worker needs 0.7 MiB; the rest is for requests.
const LEAST_HEAP: u64 = 96 * MIB;
const LEAST_HEAP_OF_A_WORKER: u64 = 2 * MIB;

/// The memory of the workers and of Envoy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The number of Envoy's workers.
    pub concurrency: u32,
    /// The hot copies of each worker.
    pub hot: HotTier,
    /// Bound on Envoy's heap, in bytes.
    pub heap_bytes: u64,
}

impl Memory {
    /// Reads `SLUICE_CONCURRENCY` and `SLUICE_HOT_…`. The cache may use a part of the machine's memory. Refuses settings
    /// that leave Envoy less memory than it needs to serve.
    pub fn read(
        env: &mut Environment<'_>,
        machine: Machine,
        cache: Option<&Cache>,
        runtime: Option<Runtime>,
    ) -> Option<Self> {
        let sets_workers = env.set("SLUICE_CONCURRENCY").is_some();
        let sets_hot = env.set("SLUICE_HOT_BYTES").is_some();
        let workers = env.number("SLUICE_CONCURRENCY", 1..=512, "a number of workers");
        let hot_bytes = HotTier::read_max_bytes(env);
        let max_object_bytes = HotTier::read_max_object_bytes(env);
        let (cache, max_object_bytes) = (cache?, max_object_bytes?);
        let left = machine.memory_bytes.saturating_sub(cache.memory_bytes());
        let workers = match sets_workers {
            true => workers?,
            false => default_workers(machine.cores, left),
        };
        let bare = Need {
            workers,
            hot_bytes: 0,
            runtime: runtime?,
        };
        let need = Need {
            hot_bytes: match sets_hot {
                true => hot_bytes?,
                false => HOT_BYTES
                    .min(left / HOT_PART / u64::from(workers))
                    .min(bare.hot_room(left)),
            },
            ..bare
        };
        if left < need.memory() {
            need.refuse(env, machine, cache, [sets_workers, sets_hot]);
            return None;
        }
        if !sets_workers && workers < machine.cores {
            env.notice(format!(
                "{workers} workers for {} cores, because the memory is {}: SLUICE_CONCURRENCY sets another number",
                machine.cores,
                shown(left)
            ));
        }
        Some(Self {
            concurrency: workers,
            hot: HotTier {
                max_bytes: need.hot_bytes,
                max_object_bytes,
            },
            heap_bytes: of_heap(left.saturating_sub(need.beside_heap())),
        })
    }
}

/// A worker for each core, or for each [`OF_A_WORKER`] bytes of the memory, whichever gives fewer.
fn default_workers(cores: u32, memory: u64) -> u32 {
    let most = memory / OF_A_WORKER;
    cores.min(u32::try_from(most).unwrap_or(u32::MAX)).max(1)
}

/// The part of the memory for Envoy's heap. The rest is for code, the machine code of the filter, buffers of the
/// kernel, and the entry point.
const fn of_heap(memory: u64) -> u64 {
    memory / 4 * 3
}

/// The memory need of workers with hot copies.
#[derive(Clone, Copy)]
struct Need {
    workers: u32,
    /// The bytes of the hot copies of one worker.
    hot_bytes: u64,
    runtime: Runtime,
}

impl Need {
    fn all_hot_bytes(self) -> u64 {
        u64::from(self.workers) * self.hot_bytes
    }

    /// The bytes of hot copies outside Envoy's heap. Each VM has memory outside the heap.
    fn beside_heap(self) -> u64 {
        match self.runtime {
            Runtime::Wasm => self.all_hot_bytes(),
            Runtime::Native => 0,
        }
    }

    /// The least memory, in bytes.
    fn memory(self) -> u64 {
        let in_heap = self.all_hot_bytes() - self.beside_heap();
        let heap = LEAST_HEAP + u64::from(self.workers) * LEAST_HEAP_OF_A_WORKER + in_heap;
        heap.div_ceil(3) * 4 + self.beside_heap()
    }

    /// The bytes of hot copies that each worker could have in this much memory, beside the need of these workers.
    fn hot_room(self, memory: u64) -> u64 {
        let room = memory.saturating_sub(self.memory());
        let room = match self.runtime {
            Runtime::Wasm => room,
            Runtime::Native => of_heap(room),
        };
        room / u64::from(self.workers)
    }

    /// Refuses the setting that uses too much: the cache's, the hot copies', or the number of workers. If none of
    /// these settings is the cause, the memory itself is too small.
    fn refuse(
        self,
        env: &mut Environment<'_>,
        machine: Machine,
        cache: &Cache,
        [sets_workers, sets_hot]: [bool; 2],
    ) {
        let left = machine.memory_bytes.saturating_sub(cache.memory_bytes());
        let fits = |need: Self| need.memory() <= left;
        let without_hot = Self {
            hot_bytes: 0,
            ..self
        };
        let one_worker = Self { workers: 1, ..self };
        let memory = shown(left);
        if sets_hot && fits(without_hot) {
            let most = shown(without_hot.hot_room(left));
            let accepted = format!(
                "at most {most} for each of {} workers, as the memory is {memory}",
                self.workers
            );
            env.refuse("SLUICE_HOT_BYTES", Some(shown(self.hot_bytes)), accepted);
        } else if sets_workers && fits(one_worker) {
            let fitting = |workers: &u32| {
                fits(Self {
                    workers: *workers,
                    ..self
                })
            };
            let most = (1..self.workers).rev().find(fitting).unwrap_or(1);
            let accepted = format!("a number of workers to {most}, as the memory is {memory}");
            env.refuse(
                "SLUICE_CONCURRENCY",
                Some(self.workers.to_string()),
                accepted,
            );
        } else if cache.memory_bytes() > 0 && self.memory() < machine.memory_bytes {
            let most = shown(machine.memory_bytes - self.memory());
            let accepted = format!(
                "at most {most}, as SLUICE_CACHE=memory has it of the memory, {}",
                shown(machine.memory_bytes)
            );
            env.refuse(
                "SLUICE_CACHE_MAX_BYTES",
                Some(Size(cache.max_bytes).to_string()),
                accepted,
            );
        } else {
            let least = self.memory().next_multiple_of(MIB);
            let least = Size(least + cache.memory_bytes());
            env.report(SettingProblem::Machine(format!(
                "the memory is {}: expected at least {least}; raise the limit of the container or the unit",
                shown(machine.memory_bytes)
            )));
        }
    }
}

/// A size in whole MiB, because the memory of a machine is rarely a round number.
fn shown(bytes: u64) -> String {
    Size(bytes / MIB * MIB).to_string()
}
