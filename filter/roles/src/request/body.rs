// SPDX-License-Identifier: Apache-2.0
//! The body of a response while it passes: what is put in its place, and what of it the client gets.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use sluice_core::host::HostError;
use sluice_core::hot::Capture;
use sluice_core::http::caching::cache_status::CacheStatus;
use sluice_core::http::conditional::range::Slicer;
use sluice_core::workers::BodyId;

use sluice_host::{self as host, Half, Host};

/// The body of a response to a client, as it passes.
#[derive(Debug)]
pub struct PassingBody {
    /// Whether the response has none.
    pub missing: Cell<bool>,
    /// The body that comes out of the store or goes into it, if no header tells its length.
    pub unannounced: Cell<Option<BodyId>>,
    /// Bytes that have come.
    pub bytes: Cell<u64>,
    /// What replaces it, before a part is cut out of it.
    pub replacement: RefCell<Body>,
    /// What of it the client gets.
    pub passing: Cell<Passing>,
    held: Cell<HeldBody>,
    /// The copy that is made of it for the hot tier.
    pub capture: RefCell<Option<Capture>>,
    /// The copy that is made of it for equal ranges.
    pub part: RefCell<Option<PartCopy>>,
    /// How this copy is shared with followers, where the response does not go into the store.
    pub sharing: Cell<Option<Sharing>>,
}

impl PassingBody {
    /// Nothing has come yet. To a HEAD no body goes on: one that leads fills the store as GET, and Envoy would send a body
    /// of unannounced length.
    pub fn new(head: bool) -> Self {
        let passing = if head {
            Passing::Nothing
        } else {
            Passing::Whole
        };
        Self {
            missing: Cell::new(false),
            unannounced: Cell::new(None),
            bytes: Cell::new(0),
            replacement: RefCell::default(),
            passing: Cell::new(passing),
            held: Cell::default(),
            capture: RefCell::new(None),
            part: RefCell::new(None),
            sharing: Cell::new(None),
        }
    }

    /// Whether a copy is made of it.
    pub fn is_copied(&self) -> bool {
        self.capture.borrow().is_some() || self.part.borrow().is_some()
    }

    /// The response is held at its headers, until [`PassingBody::release`].
    pub fn hold(&self) {
        self.held.set(HeldBody::Awaited);
    }

    /// The response is held at its headers until it is answered otherwise, so its body is dropped.
    pub fn hold_unwanted(&self) {
        self.held.set(HeldBody::Unwanted);
    }

    /// Takes a part of the body: `size` bytes are there now, with those that Envoy has kept, and all of them if it `ends`.
    /// True if the response is held and must not go on.
    pub fn wait(&self, host: &dyn Host, size: usize, ends: bool) -> host::Result<bool> {
        let held = self.held.get();
        self.held.set(match held {
            HeldBody::Passing => HeldBody::Passing,
            HeldBody::Released { .. } if ends => HeldBody::Passing,
            HeldBody::Released { .. } => HeldBody::Released { size },
            HeldBody::Awaited | HeldBody::Kept { .. } => HeldBody::Kept { size, ends },
            HeldBody::Unwanted => {
                host.drop_response_body(size)?;
                HeldBody::Unwanted
            }
        });
        Ok(!matches!(self.held.get(), HeldBody::Passing))
    }

    /// Whether the response that is held has come to its end.
    pub fn has_ended(&self) -> bool {
        self.missing.get() || matches!(self.held.get(), HeldBody::Kept { ends: true, .. })
    }

    /// How many bytes Envoy has kept of the body of a response that is held; `None` for any other.
    pub fn kept(&self) -> Option<usize> {
        match self.held.get() {
            HeldBody::Passing => None,
            HeldBody::Awaited | HeldBody::Unwanted => Some(0),
            HeldBody::Kept { size, .. } | HeldBody::Released { size } => Some(size),
        }
    }

    /// Lets the response of the effective context go on that is held, at once or with the end of its body.
    pub fn release(&self, host: &dyn Host) -> host::Result<()> {
        match self.held.replace(HeldBody::Passing) {
            HeldBody::Kept { size, ends: false } => {
                self.held.set(HeldBody::Released { size });
                return Ok(());
            }
            HeldBody::Kept { size, ends: true } => self.pass(host, size)?,
            _ => {}
        }
        host.resume(Half::Response)
    }

    /// Replaces the next `size` bytes if need be, and lets through what the client wants of them.
    pub fn pass(&self, host: &dyn Host, size: usize) -> host::Result<()> {
        let size = self.replacement.borrow_mut().pass(host, size)?;
        let mut passing = self.passing.get();
        let passed = passing.pass(host, size);
        self.passing.set(passing);
        passed
    }
}

/// The body of a response that may be held at its headers. Parts of it come all the same, and Envoy keeps them.
#[derive(Clone, Copy, Debug, Default)]
enum HeldBody {
    /// The response is not held.
    #[default]
    Passing,
    /// Nothing of it has come.
    Awaited,
    /// So many bytes have come, and all of them if it `ends`.
    Kept { size: usize, ends: bool },
    /// So many bytes have come, and the response goes on with the last. Envoy would lose what it has kept of a body that
    /// goes on before its end.
    Released { size: usize },
    /// Nobody gets it.
    Unwanted,
}

/// How the copy of a response is shared that does not go into the store.
#[derive(Clone, Copy, Debug)]
pub struct Sharing {
    /// The `Cache-Status` of the followers.
    pub way: CacheStatus<'static>,
    /// Whether it is only for those who wait for it already, and no hot copy.
    pub once: bool,
}

/// A copy of a 206, for other clients with an equal range.
#[derive(Debug, Default)]
pub struct PartCopy {
    /// Its headers as those clients get them, serialised.
    pub headers: Vec<u8>,
    /// Whether it has a media type.
    pub typed: bool,
    /// As much of its body as has come.
    pub body: Vec<u8>,
}

/// The largest page that may take the place of a body that passes, in bytes. Envoy resets a stream, amid the call, when it
/// has to hold more of a body than its connection's buffer takes (64 KiB). A larger page is a reply.
const MOST_REPLACED_BYTES: usize = 16 << 10;
/// The fault of a page that is larger.
const TOO_LARGE: HostError = HostError { status: 2 };

/// What replaces a response's body.
#[derive(Debug, Default)]
pub enum Body {
    /// Nothing: it goes on as it is.
    #[default]
    Kept,
    /// This page, which has not gone on yet.
    Replaced(Vec<u8>),
    /// A page that has gone on; the rest of the body is dropped.
    Dropped,
}

impl Body {
    /// Handles a part of `size` bytes that passes; gives the size that it has then.
    pub fn pass(&mut self, host: &dyn Host, size: usize) -> host::Result<usize> {
        match self {
            Self::Kept => Ok(size),
            Self::Replaced(page) => {
                let length = page.len();
                if length > MOST_REPLACED_BYTES {
                    return Err(TOO_LARGE);
                }
                host.replace_response_body(size, page)?;
                *self = Self::Dropped;
                Ok(length)
            }
            Self::Dropped => host.drop_response_body(size).map(|()| 0),
        }
    }
}

/// Which part of a response's body goes to the client.
#[derive(Clone, Copy, Debug)]
pub enum Passing {
    /// All of it.
    Whole,
    /// A part.
    Slice(Slicer),
    /// None of it.
    Nothing,
}

impl Passing {
    /// Lets through what the client wants of the next `size` bytes of the body.
    pub fn pass(&mut self, host: &dyn Host, size: usize) -> host::Result<()> {
        match self {
            Self::Whole => Ok(()),
            Self::Nothing => keep(host, size, 0..0),
            Self::Slice(slicer) => keep(host, size, slicer.keep(size)),
        }
    }
}

/// Keeps that part of the next `size` bytes. Only the start of a passing buffer can be dropped without a copy.
fn keep(host: &dyn Host, size: usize, kept: Range<usize>) -> host::Result<()> {
    if kept.end == size {
        host.drop_response_body(kept.start)
    } else if kept.is_empty() {
        host.drop_response_body(size)
    } else {
        let bytes = host.response_body(kept)?;
        host.replace_response_body(size, &bytes)
    }
}
