// SPDX-License-Identifier: Apache-2.0
//! The body of a response while it passes: its replacement in ORIGIN, and the part that the client gets in EDGE.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use sluice_core::host::HostError;
use sluice_core::hot::Capture;
use sluice_core::http::caching::cache_status::CacheStatus;
use sluice_core::http::conditional::range::{Part, Slicer};
use sluice_core::workers::BodyId;

use sluice_host::{self as host, Half, Host};

/// The body of a response to a client, as it passes.
#[derive(Debug)]
pub struct PassingBody {
    /// Whether the response has no body.
    pub missing: Cell<bool>,
    /// The body that comes from the store or is stored, if the headers lack its length.
    pub unannounced: Cell<Option<BodyId>>,
    /// Bytes that have arrived.
    pub bytes: Cell<u64>,
    /// Bytes that have been passed on to the client.
    pub sent: Cell<u64>,
    /// The part of the body that the client gets.
    pub passing: Cell<Slicer>,
    held: Cell<HeldBody>,
    /// The copy for the hot tier.
    pub capture: RefCell<Option<Capture>>,
    /// How the copy for the hot tier is shared with followers, if the response is not stored.
    pub sharing: Cell<Option<Sharing>>,
}

impl PassingBody {
    /// The state before any body has arrived. A HEAD gets no body, because a leading HEAD fills the store as GET, and
    /// Envoy would forward a body of unannounced length.
    pub fn new(head: bool) -> Self {
        let part = if head { Part::Nothing } else { Part::Whole };
        Self {
            missing: Cell::new(false),
            unannounced: Cell::new(None),
            bytes: Cell::new(0),
            sent: Cell::new(0),
            passing: Cell::new(Slicer::new(part)),
            held: Cell::default(),
            capture: RefCell::new(None),
            sharing: Cell::new(None),
        }
    }

    /// Passes only this part of the body to the client.
    pub fn pass_only(&self, part: Part) {
        self.passing.set(Slicer::new(part));
    }

    /// Whether a copy of it is being made.
    pub fn is_copied(&self) -> bool {
        self.capture.borrow().is_some()
    }

    /// Holds the response at its headers, until [`PassingBody::release`].
    pub fn hold(&self) {
        let (size, ends) = (0, false);
        self.held.set(HeldBody::Kept { size, ends });
    }

    /// Holds the response at its headers until another answer replaces it. Its body is dropped.
    pub fn hold_unwanted(&self) {
        self.pass_only(Part::Nothing);
        self.hold();
    }

    /// Handles a part of the body. `size` is the number of bytes present, including the bytes that Envoy has kept.
    /// `ends` says that they are the last. Returns true if the response is held and must not continue.
    pub fn wait(&self, host: &dyn Host, size: usize, ends: bool) -> host::Result<bool> {
        let held = self.held.get();
        self.held.set(match held {
            HeldBody::Passing => HeldBody::Passing,
            HeldBody::Released { .. } if ends => HeldBody::Passing,
            HeldBody::Released { .. } => HeldBody::Released { size },
            HeldBody::Kept { .. } if self.passing.get().part == Part::Nothing => {
                host.drop_response_body(size)?;
                HeldBody::Kept { size: 0, ends }
            }
            HeldBody::Kept { .. } => HeldBody::Kept { size, ends },
        });
        Ok(!matches!(self.held.get(), HeldBody::Passing))
    }

    /// Whether the held response has ended.
    pub fn has_ended(&self) -> bool {
        self.missing.get() || matches!(self.held.get(), HeldBody::Kept { ends: true, .. })
    }

    /// The number of bytes that Envoy has kept of the body of a held response. `None` for any other response.
    pub fn kept(&self) -> Option<usize> {
        match self.held.get() {
            HeldBody::Passing => None,
            HeldBody::Kept { size, .. } | HeldBody::Released { size } => Some(size),
        }
    }

    /// Lets the held response of the effective context continue, at once or at the end of its body.
    pub fn release(&self, host: &dyn Host) -> host::Result<()> {
        match self.held.replace(HeldBody::Passing) {
            HeldBody::Kept { size, ends: true } => self.pass(host, size)?,
            HeldBody::Kept { size, .. } if size > 0 => {
                self.held.set(HeldBody::Released { size });
                return Ok(());
            }
            _ => {}
        }
        host.resume(Half::Response)
    }

    /// Passes on the part of the next `size` bytes that the client wants.
    pub fn pass(&self, host: &dyn Host, size: usize) -> host::Result<()> {
        let mut passing = self.passing.get();
        let kept = passing.keep(size);
        self.passing.set(passing);
        self.sent.set(self.sent.get() + kept.len() as u64);
        keep(host, size, kept)
    }
}

/// The state of a response's body that may be held at its headers. Parts of it arrive nevertheless, and Envoy keeps
/// them.
#[derive(Clone, Copy, Debug, Default)]
enum HeldBody {
    /// The response is not held.
    #[default]
    Passing,
    /// `size` bytes have arrived and are kept: none if the client gets nothing of the body. `ends` says that they are
    /// the last.
    Kept { size: usize, ends: bool },
    /// `size` bytes have arrived, and the response continues at the end of the body. Envoy would lose the kept bytes
    /// of a body that continues before its end.
    Released { size: usize },
}

/// How the copy of a response that is not stored is shared.
#[derive(Clone, Copy, Debug)]
pub struct Sharing {
    /// The `Cache-Status` of the followers.
    pub way: CacheStatus<'static>,
    /// Whether the copy is only for requests that wait already, and not for the hot tier.
    pub once: bool,
}

/// The largest page that may replace a passing body, in bytes. Envoy resets a stream during the host call if it has
/// to hold more of a body than its connection's buffer takes (64 KiB). A larger page must be sent as a reply.
const MOST_REPLACED_BYTES: usize = 16 << 10;
/// The error for a larger page.
const TOO_LARGE: HostError = HostError { status: 2 };

/// The replacement of a response's body.
#[derive(Debug, Default)]
pub enum Body {
    /// None: the body passes unchanged.
    #[default]
    Kept,
    /// This page, which has not been sent yet.
    Replaced(Vec<u8>),
    /// A page that has been sent. The rest of the body is dropped.
    Dropped,
}

impl Body {
    /// Handles a part of `size` bytes that passes.
    pub fn pass(&mut self, host: &dyn Host, size: usize) -> host::Result<()> {
        match self {
            Self::Kept => Ok(()),
            Self::Replaced(page) if page.len() > MOST_REPLACED_BYTES => Err(TOO_LARGE),
            Self::Replaced(page) => {
                host.replace_response_body(size, page)?;
                *self = Self::Dropped;
                Ok(())
            }
            Self::Dropped => host.drop_response_body(size),
        }
    }
}

/// Keeps the part `kept` of the next `size` bytes. Only the start of a passing buffer can be dropped without a copy.
fn keep(host: &dyn Host, size: usize, kept: Range<usize>) -> host::Result<()> {
    if kept.len() == size {
        Ok(())
    } else if kept.end == size {
        host.drop_response_body(kept.start)
    } else if kept.is_empty() {
        host.drop_response_body(size)
    } else {
        let bytes = host.response_body(kept)?;
        host.replace_response_body(size, &bytes)
    }
}
