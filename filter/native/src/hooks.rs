// SPDX-License-Identifier: Apache-2.0
//! The module's event hooks. No panic leaves a hook: it costs the worker its requests, but does not end Envoy.

use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::Arc;

use sluice_host::{Action, Half, Host};
use sluice_roles::callbacks::StreamContext;
use sluice_roles::worker::Worker;

use crate::abi::{
    self, CallAnswer, DataStatus, ExchangeEvent, Filter, FilterConfig, HeadersStatus, Hooks,
    LogLevel, TrailersStatus,
};
use crate::carrier;
use crate::configuration::Configuration;
use crate::host::NativeHost;
use crate::metrics;
use crate::native_worker::NativeWorker;
use crate::process::PROCESS;
use crate::slicer::Slicer;
use crate::slicer::carrier::SliceCarrier;
use crate::stream::{Part, Stream};

/// The type that implements the hooks.
pub enum Module {}

/// Runs a hook of a stream. Returns `ended` for a stream whose worker is lost.
fn guarded<R>(stream: &Rc<Stream>, ended: R, hook: impl FnOnce(&'static NativeWorker) -> R) -> R {
    // At Envoy's end another thread destroys the streams that a worker has left.
    let native_worker = NativeWorker::of_this_thread().filter(|_| !stream.lost.get());
    let Some(native_worker) = native_worker else {
        return ended;
    };
    panic::catch_unwind(AssertUnwindSafe(|| hook(native_worker))).unwrap_or_else(|_| {
        native_worker.lose_worker();
        ended
    })
}

/// Calls the role for one half of its stream, carries out its tasks, and returns how that half continues.
fn handle(
    native_worker: &'static NativeWorker,
    stream: &Rc<Stream>,
    half: Half,
    call: impl FnOnce(&mut dyn StreamContext, &dyn Host, Option<&mut Worker>) -> Action,
) -> Action {
    stream.handling.set(Some(half));
    let action = native_worker.call(stream, call);
    native_worker.do_tasks();
    stream.handling.set(None);
    match action {
        // The role is in use, which should not happen. No message may pass without the role.
        None => Action::Pause,
        Some(Action::Pause) if stream.resumed.take() => Action::Continue,
        Some(action) => action,
    }
}

/// Notifies the role once that its stream is over. If Envoy ends the stream within a callback, the role is notified
/// after that callback.
fn end(native_worker: &'static NativeWorker, stream: &Rc<Stream>) {
    if stream.ended.get() {
        return;
    }
    if native_worker.is_busy() {
        native_worker.end_later(stream);
    } else {
        native_worker.call(stream, |role, _, worker| role.on_done(worker));
        native_worker.forget(stream);
        native_worker.do_tasks();
    }
}

/// Status of the headers, the same as in Envoy's Wasm host: in front of the cache filter, the body of a paused
/// message still reaches the filter.
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

impl Hooks for Module {
    type Config = Configuration;
    type Stream = Stream;

    fn on_program_init() {
        panic::set_hook(Box::new(|panic| {
            abi::log(LogLevel::Critical, &format!("sluice: {panic}"));
        }));
    }

    fn on_config_new(
        config: FilterConfig,
        role: &[u8],
        text: Vec<u8>,
    ) -> Option<Arc<Configuration>> {
        let made = panic::catch_unwind(AssertUnwindSafe(|| {
            let configuration = Configuration::new(role, text)?;
            if configuration.is_slice_carrier() {
                carrier::connect_all(&configuration.text);
            }
            if configuration.is_alone() {
                return Ok(Arc::new(configuration));
            }
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

    fn on_config_destroy(configuration: Arc<Configuration>) {
        PROCESS.remove_configuration(&configuration);
    }

    fn on_new(configuration: &Arc<Configuration>, filter: Filter) -> Option<Rc<Stream>> {
        if let Some(aid) = configuration.aid() {
            return Some(Rc::new(Stream::new(0, filter, Part::Aid(aid), true)));
        }
        if configuration.is_slicer() {
            let slicer = Part::Slicer(Rc::new(Slicer::new(filter)));
            return Some(Rc::new(Stream::new(0, filter, slicer, false)));
        }
        if configuration.is_slice_carrier() {
            let carrier = Part::SliceCarrier(Rc::new(SliceCarrier::new(filter)));
            return Some(Rc::new(Stream::new(0, filter, carrier, false)));
        }
        let native_worker = NativeWorker::take(|native_worker| Rc::new(NativeHost(native_worker)));
        let opened = panic::catch_unwind(AssertUnwindSafe(|| {
            if configuration.is_carrier() {
                return Some(Rc::new(Stream::new(0, filter, Part::Carrier, false)));
            }
            native_worker.open(configuration, filter)
        }));
        opened.unwrap_or_else(|_| {
            native_worker.lose_worker();
            None
        })
    }

    fn on_request_headers(stream: &Rc<Stream>, ends: bool) -> HeadersStatus {
        if let Part::Aid(aid) = &stream.part {
            return aid.on_request_headers(stream.filter, ends);
        }
        if let Part::Slicer(slicer) = &stream.part {
            slicer.begin();
            return HeadersStatus::StopIteration;
        }
        if let Part::SliceCarrier(carrier) = &stream.part {
            carrier.begin();
            return HeadersStatus::StopIteration;
        }
        guarded(stream, HeadersStatus::StopIteration, |native_worker| {
            if let Part::Carrier = stream.part {
                if !carrier::begin(native_worker, stream) {
                    stream.filter.reset("sluice_second_carrier");
                }
                return HeadersStatus::StopIteration;
            }
            let action = handle(
                native_worker,
                stream,
                Half::Request,
                |role, host, worker| {
                    #[cfg(feature = "trap")]
                    crate::trap::on_demand(host, stream.upstream);
                    role.on_request_headers(host, worker, ends)
                },
            );
            headers_status(stream, action)
        })
    }

    fn on_request_body(stream: &Rc<Stream>, ends: bool) -> DataStatus {
        match stream.part {
            Part::Aid(_) => return DataStatus::Continue,
            // The slicer does not use the body, and no client can send more of it than Envoy buffers.
            Part::Slicer(_) | Part::SliceCarrier(_) => return DataStatus::StopIterationAndBuffer,
            Part::Carrier | Part::Role(_) => {}
        }
        guarded(
            stream,
            DataStatus::StopIterationAndBuffer,
            |native_worker| {
                let size = stream.request_body_size();
                let action = handle(
                    native_worker,
                    stream,
                    Half::Request,
                    |role, host, worker| role.on_request_body(host, worker, size, ends),
                );
                data_status(action)
            },
        )
    }

    fn on_request_trailers(stream: &Rc<Stream>) -> TrailersStatus {
        match stream.part {
            Part::Aid(_) => return TrailersStatus::Continue,
            Part::Slicer(_) | Part::SliceCarrier(_) => return TrailersStatus::StopIteration,
            Part::Carrier | Part::Role(_) => {}
        }
        guarded(stream, TrailersStatus::StopIteration, |native_worker| {
            let action = handle(
                native_worker,
                stream,
                Half::Request,
                |role, host, worker| role.on_request_trailers(host, worker),
            );
            trailers_status(action)
        })
    }

    fn on_response_headers(stream: &Rc<Stream>, ends: bool) -> HeadersStatus {
        if let Part::Aid(aid) = &stream.part {
            return aid.on_response_headers(stream.filter);
        }
        if stream.passes() {
            return HeadersStatus::Continue;
        }
        guarded(stream, HeadersStatus::StopIteration, |native_worker| {
            stream.responds.set(true);
            let action = handle(
                native_worker,
                stream,
                Half::Response,
                |role, host, worker| role.on_response_headers(host, worker, ends),
            );
            headers_status(stream, action)
        })
    }

    fn on_response_body(stream: &Rc<Stream>, ends: bool) -> DataStatus {
        if stream.passes() {
            return DataStatus::Continue;
        }
        guarded(
            stream,
            DataStatus::StopIterationAndBuffer,
            |native_worker| {
                let size = stream.response_body_size();
                let action = handle(
                    native_worker,
                    stream,
                    Half::Response,
                    |role, host, worker| role.on_response_body(host, worker, size, ends),
                );
                data_status(action)
            },
        )
    }

    fn on_response_trailers(stream: &Rc<Stream>) -> TrailersStatus {
        if stream.passes() {
            return TrailersStatus::Continue;
        }
        guarded(stream, TrailersStatus::StopIteration, |native_worker| {
            let action = handle(
                native_worker,
                stream,
                Half::Response,
                |role, host, worker| role.on_response_trailers(host, worker),
            );
            trailers_status(action)
        })
    }

    fn on_stream_complete(stream: &Rc<Stream>) {
        if let Part::Aid(_) | Part::Slicer(_) | Part::SliceCarrier(_) = stream.part {
            return;
        }
        guarded(stream, (), |native_worker| {
            if !native_worker.is_busy() {
                native_worker.call(stream, |role, host, worker| role.on_log(host, worker));
            }
            // Envoy may destroy the stream in a later turn, and has already dropped the state of its request.
            end(native_worker, stream);
        });
    }

    fn on_destroy(stream: Rc<Stream>) {
        match &stream.part {
            Part::Aid(_) => return,
            Part::Slicer(slicer) => return slicer.end(),
            Part::SliceCarrier(carrier) => return carrier.end(),
            Part::Carrier | Part::Role(_) => {}
        }
        guarded(&stream, (), |native_worker| match stream.part {
            Part::Carrier => carrier::end(native_worker, &stream),
            Part::Aid(_) | Part::Slicer(_) | Part::SliceCarrier(_) => {}
            Part::Role(_) => end(native_worker, &stream),
        });
        stream.ended.set(true);
        if NativeWorker::of_this_thread().is_none() {
            // The stream's state must not be destroyed on another thread than its worker's.
            std::mem::forget(stream);
        }
    }

    fn on_call_answered(stream: &Rc<Stream>, call: u64, answer: Option<CallAnswer>) {
        guarded(stream, (), |native_worker| {
            let answered = answer.is_some();
            let size = answer.as_ref().map_or(0, |answer| answer.body.len());
            native_worker.answer.replace(answer);
            match stream.part {
                Part::Carrier => {
                    if let (Some(root), Ok(call)) =
                        (native_worker.take_call(call), u32::try_from(call))
                    {
                        native_worker.call_root(root, |root, worker| {
                            root.on_call_response(worker, call, answered, size);
                        });
                    }
                }
                Part::Aid(_) | Part::Slicer(_) | Part::SliceCarrier(_) => {}
                Part::Role(_) => {
                    native_worker.call(stream, |role, host, worker| {
                        role.on_call_response(host, worker, answered, size);
                    });
                    native_worker.do_tasks();
                }
            }
            native_worker.answer.replace(None);
        });
    }

    fn on_scheduled(stream: &Rc<Stream>) {
        if let Part::Aid(aid) = &stream.part {
            return aid.on_scheduled(stream.filter);
        }
        if stream.lost.get() {
            return stream.end_lost();
        }
        guarded(stream, (), carrier::serve);
    }

    fn on_exchange(stream: &Rc<Stream>, exchange: u64, event: ExchangeEvent<'_>) {
        match &stream.part {
            Part::Slicer(slicer) => slicer.on_exchange(exchange, event),
            Part::SliceCarrier(carrier) => carrier.on_exchange(exchange, event),
            Part::Carrier | Part::Aid(_) | Part::Role(_) => {}
        }
    }

    fn on_client_buffer(stream: &Rc<Stream>, is_full: bool) {
        if let Part::Slicer(slicer) = &stream.part {
            slicer.on_client_buffer(is_full);
        }
    }
}
