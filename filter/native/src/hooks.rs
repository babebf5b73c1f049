// SPDX-License-Identifier: Apache-2.0
//! What Envoy tells the module. No panic leaves a hook: it costs the worker its requests, and not Envoy its life.

use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::Arc;

use sluice_roles::host::{Action, Half};

use crate::abi::{self, DataStatus, Filter, FilterConfig, HeadersStatus, LogLevel, TrailersStatus};
use crate::carrier;
use crate::configuration::Configuration;
use crate::metrics;
use crate::process::PROCESS;
use crate::seat::Seat;
use crate::stream::{CallAnswer, Part, Stream};

/// The module has been loaded.
pub fn on_program_init() {
    panic::set_hook(Box::new(|panic| {
        abi::log(LogLevel::Critical, &format!("sluice: {panic}"));
    }));
}

/// Envoy makes a configuration, on its main thread. `None` refuses it.
pub fn on_config_new(
    config: FilterConfig,
    role: &[u8],
    text: Vec<u8>,
) -> Option<Arc<Configuration>> {
    let made = panic::catch_unwind(AssertUnwindSafe(|| {
        let configuration = Configuration::new(role, text)?;
        let numbers = metrics::define_all(config).ok_or("Envoy refuses the metrics")?;
        if *PROCESS.metrics.get_or_init(|| numbers.clone()) != numbers {
            return Err("Envoy numbers the metrics in another way".to_owned());
        }
        if configuration.is_carrier() {
            carrier::connect_all(&configuration.text);
        }
        let configuration = Arc::new(configuration);
        PROCESS.add_configuration(&configuration);
        Ok(configuration)
    }));
    let refuse = |error: String| abi::log(LogLevel::Error, &format!("sluice: {error}"));
    made.ok()?.map_err(refuse).ok()
}

/// Envoy drops a configuration, on any thread.
pub fn on_config_destroy(configuration: Arc<Configuration>) {
    PROCESS.remove_configuration(&configuration);
}

/// A stream begins. `None` closes it.
pub fn on_new(configuration: &Arc<Configuration>, filter: Filter) -> Option<Rc<Stream>> {
    let seat = Seat::of_this_thread();
    let opened = panic::catch_unwind(AssertUnwindSafe(|| {
        if configuration.is_carrier() {
            return Some(Rc::new(Stream::new(0, seat, filter, Part::Carrier, false)));
        }
        seat.open(configuration, filter)
    }));
    opened.unwrap_or_else(|_| {
        let witness = Rc::new(Stream::new(0, seat, filter, Part::Carrier, false));
        seat.lose_worker(&witness);
        None
    })
}

/// Runs a hook of a stream; `ended` is what becomes of a stream whose worker is lost.
fn guarded<R>(stream: &Rc<Stream>, ended: R, hook: impl FnOnce() -> R) -> R {
    if stream.lost.get() {
        return ended;
    }
    panic::catch_unwind(AssertUnwindSafe(hook)).unwrap_or_else(|_| {
        stream.seat.lose_worker(stream);
        ended
    })
}

/// How a half goes on whose headers the role handles in `call`.
fn handle(stream: &Rc<Stream>, half: Half, call: impl FnOnce() -> Option<Action>) -> Action {
    stream.handling.set(Some(half));
    let action = call();
    stream.seat.do_tasks();
    stream.handling.set(None);
    match action {
        // The role is in use, which cannot be: nothing passes unseen.
        None => Action::Pause,
        Some(Action::Pause) if stream.resumed.take() => Action::Continue,
        Some(action) => action,
    }
}

/// As Envoy's Wasm host: before the cache filter, the body of what is paused reaches the filter.
const fn headers_status(stream: &Stream, action: Action) -> HeadersStatus {
    match action {
        Action::Continue => HeadersStatus::Continue,
        Action::Pause if stream.upstream => HeadersStatus::StopAllIterationAndWatermark,
        Action::Pause => HeadersStatus::StopIteration,
    }
}

const fn data_status(action: Action) -> DataStatus {
    match action {
        Action::Continue => DataStatus::Continue,
        Action::Pause => DataStatus::StopIterationAndBuffer,
    }
}

const fn trailers_status(action: Action) -> TrailersStatus {
    match action {
        Action::Continue => TrailersStatus::Continue,
        Action::Pause => TrailersStatus::StopIteration,
    }
}

/// The request's headers.
pub fn on_request_headers(stream: &Rc<Stream>, ends: bool) -> HeadersStatus {
    guarded(stream, HeadersStatus::StopIteration, || {
        if let Part::Carrier = stream.part {
            if !carrier::begin(stream) {
                stream.filter.reset();
            }
            return HeadersStatus::StopIteration;
        }
        let action = handle(stream, Half::Request, || {
            stream.seat.call(stream, |role, host, worker| {
                #[cfg(feature = "trap")]
                crate::trap::on_demand(host, stream.upstream);
                role.on_request_headers(host, worker, ends)
            })
        });
        headers_status(stream, action)
    })
}

/// A part of the request's body, or its end.
pub fn on_request_body(stream: &Rc<Stream>, ends: bool) -> DataStatus {
    guarded(stream, DataStatus::StopIterationAndBuffer, || {
        let action = handle(stream, Half::Request, || {
            let size = stream.request_body_size();
            stream.seat.call(stream, |role, host, worker| {
                role.on_request_body(host, worker, size, ends)
            })
        });
        data_status(action)
    })
}

/// The request's trailers.
pub fn on_request_trailers(stream: &Rc<Stream>) -> TrailersStatus {
    guarded(stream, TrailersStatus::StopIteration, || {
        let action = handle(stream, Half::Request, || {
            let seat = stream.seat;
            seat.call(stream, |role, host, worker| {
                role.on_request_trailers(host, worker)
            })
        });
        trailers_status(action)
    })
}

/// The response's headers.
pub fn on_response_headers(stream: &Rc<Stream>, ends: bool) -> HeadersStatus {
    if is_own_reply(stream) {
        return HeadersStatus::Continue;
    }
    guarded(stream, HeadersStatus::StopIteration, || {
        stream.responds.set(true);
        let action = handle(stream, Half::Response, || {
            stream.seat.call(stream, |role, host, worker| {
                role.on_response_headers(host, worker, ends)
            })
        });
        headers_status(stream, action)
    })
}

/// A part of the response's body, or its end.
pub fn on_response_body(stream: &Rc<Stream>, ends: bool) -> DataStatus {
    if is_own_reply(stream) {
        return DataStatus::Continue;
    }
    guarded(stream, DataStatus::StopIterationAndBuffer, || {
        let action = handle(stream, Half::Response, || {
            let size = stream.response_body_size();
            stream.seat.call(stream, |role, host, worker| {
                role.on_response_body(host, worker, size, ends)
            })
        });
        data_status(action)
    })
}

/// The response's trailers.
pub fn on_response_trailers(stream: &Rc<Stream>) -> TrailersStatus {
    if is_own_reply(stream) {
        return TrailersStatus::Continue;
    }
    guarded(stream, TrailersStatus::StopIteration, || {
        let action = handle(stream, Half::Response, || {
            let seat = stream.seat;
            seat.call(stream, |role, host, worker| {
                role.on_response_trailers(host, worker)
            })
        });
        trailers_status(action)
    })
}

/// Whether what passes is the filter's own, which the role has seen.
fn is_own_reply(stream: &Stream) -> bool {
    stream.replied.get()
}

/// The stream is over, and the access log is about to be written.
pub fn on_stream_complete(stream: &Rc<Stream>) {
    guarded(stream, (), || {
        stream
            .seat
            .call(stream, |role, host, worker| role.on_log(host, worker));
        stream.seat.do_tasks();
    });
}

/// Envoy destroys its side of the stream.
pub fn on_destroy(stream: Rc<Stream>) {
    if !stream.seat.is_here() {
        // Envoy ends, and another thread clears up what the worker has left.
        std::mem::forget(stream);
        return;
    }
    guarded(&stream, (), || {
        if let Part::Carrier = stream.part {
            carrier::end(&stream);
            stream.ended.set(true);
            return;
        }
        stream
            .seat
            .call(&stream, |role, _, worker| role.on_done(worker));
        stream.seat.forget(&stream);
        stream.seat.do_tasks();
    });
    stream.ended.set(true);
}

/// A request of the filter's own has been answered, or not.
pub fn on_call_answered(stream: &Rc<Stream>, call: u64, answer: Option<CallAnswer>) {
    guarded(stream, (), || {
        let (seat, answered) = (stream.seat, answer.is_some());
        let size = answer.as_ref().map_or(0, |answer| answer.body.len());
        seat.answer.replace(answer);
        match stream.part {
            Part::Carrier => {
                if let (Some(root), Ok(call)) = (seat.take_call(call), u32::try_from(call)) {
                    seat.call_root(root, |root, worker| {
                        root.on_call_response(worker, call, answered, size);
                    });
                }
            }
            Part::Role(_) => {
                seat.call(stream, |role, host, worker| {
                    role.on_call_response(host, worker, answered, size);
                });
                seat.do_tasks();
            }
        }
        seat.answer.replace(None);
    });
}

/// A carrier is woken.
pub fn on_scheduled(stream: &Rc<Stream>) {
    guarded(stream, (), || carrier::serve(stream));
}
