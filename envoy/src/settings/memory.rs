// SPDX-License-Identifier: Apache-2.0
//! How the memory is shared: what the cache has of it on a tmpfs, how many workers there are, what each has for hot
//! copies, and how large Envoy's heap may become.

use super::Runtime;
use super::cache::{Cache, HotTier};
use super::environment::Environment;
use crate::system::Machine;
use sluice_core::size::{MIB, Size};

/// The bytes of memory for which there is a worker, unless `CONCURRENCY` says how many there are.
const OF_A_WORKER: u64 = 128 * MIB;
/// The part of the memory that all hot copies have together, unless `HOT_BYTES` says what each worker has.
const HOT_PART: u64 = 8;
/// The most that a worker has for hot copies, unless `HOT_BYTES` says so.
const HOT_BYTES: u64 = 32 * MIB;
/// The least heap with which Envoy serves, in bytes: for itself and the filter's module, and for each worker. V8 needs 44 MiB
/// to compile the module, and an idle worker 0.7; the rest is for requests.
const LEAST_HEAP: u64 = 96 * MIB;
const LEAST_HEAP_OF_A_WORKER: u64 = 2 * MIB;

/// What the workers and Envoy have of the memory.
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
    /// Reads `CONCURRENCY` and `HOT_…`, for a machine of which the cache has a part. Refuses what leaves Envoy less than
    /// it needs to serve.
    pub fn read(
        env: &mut Environment<'_>,
        machine: Machine,
        cache: Option<&Cache>,
        runtime: Option<Runtime>,
    ) -> Option<Self> {
        let sets_workers = env.set("CONCURRENCY").is_some();
        let sets_hot = env.set("HOT_BYTES").is_some();
        let workers = env.number("CONCURRENCY", 1..=512, "a number of workers");
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
                "{workers} workers for {} cores, as the memory is {}: CONCURRENCY sets another number",
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

/// A worker for each core, or for each part of the memory where these are fewer.
fn default_workers(cores: u32, memory: u64) -> u32 {
    let most = memory / OF_A_WORKER;
    cores.min(u32::try_from(most).unwrap_or(u32::MAX)).max(1)
}

/// The part of the memory that is for Envoy's heap. The rest is for code, the machine code of the filter, buffers of the
/// kernel and the entry point.
const fn of_heap(memory: u64) -> u64 {
    memory / 4 * 3
}

/// What workers with hot copies need.
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

    /// The hot copies that are not in Envoy's heap: those of VMs, which have memory of their own.
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

    /// The bytes that each worker could have for hot copies beside what these workers need, in so much memory.
    fn hot_room(self, memory: u64) -> u64 {
        let room = memory.saturating_sub(self.memory());
        let room = match self.runtime {
            Runtime::Wasm => room,
            Runtime::Native => of_heap(room),
        };
        room / u64::from(self.workers)
    }

    /// Refuses the setting without which there would be enough: the cache's, the hot copies', or that of the workers. If
    /// there is none, the memory itself is too little.
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
            env.refuse("HOT_BYTES", Some(shown(self.hot_bytes)), accepted);
        } else if sets_workers && fits(one_worker) {
            let fitting = |workers: &u32| {
                fits(Self {
                    workers: *workers,
                    ..self
                })
            };
            let most = (1..self.workers).rev().find(fitting).unwrap_or(1);
            let accepted = format!("a number of workers to {most}, as the memory is {memory}");
            env.refuse("CONCURRENCY", Some(self.workers.to_string()), accepted);
        } else if cache.memory_bytes() > 0 && self.memory() < machine.memory_bytes {
            let most = shown(machine.memory_bytes - self.memory());
            let accepted = format!(
                "at most {most}, as CACHE=memory has it of the memory, {}",
                shown(machine.memory_bytes)
            );
            env.refuse(
                "CACHE_MAX_BYTES",
                Some(Size(cache.max_bytes).to_string()),
                accepted,
            );
        } else {
            let least = self.memory().next_multiple_of(MIB);
            let least = Size(least + cache.memory_bytes());
            env.report(format!(
                "the memory is {}: expected at least {least}; raise the limit of the container or the unit",
                shown(machine.memory_bytes)
            ));
        }
    }
}

/// A size in whole MiB, as that of a machine is no round number.
fn shown(bytes: u64) -> String {
    Size(bytes / MIB * MIB).to_string()
}
