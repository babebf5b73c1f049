// SPDX-License-Identifier: Apache-2.0
//! How ORIGIN changes the headers of a response for Envoy's cache, and how EDGE changes them back.

use std::borrow::Cow;

use crate::stored::entry::{ENTRY_HEADER, Entry, FillId};
use crate::stored::hidden_fields::HIDDEN_FIELDS;
use crate::stored::revalidation::Revalidation;
use crate::stored::stored_fields::{
    STORED_CACHE_CONTROL, STORED_DATE, STORED_VARY, StoredFields, UPSTREAM_SERVICE_TIME,
};
use crate::stored::validator::Validator;
use sluice_core::freshness::{Lifetime, Storage};
use sluice_core::http::syntax::date;
use sluice_core::http::syntax::field_value::{FieldValue, JoinedValue};
use sluice_host::header_edit::HeaderEdit;

/// Stands in for a status that Envoy's cache filters cannot store. It is an error itself, so that an
/// entry is never taken for content without the filter.
const DISGUISE: &str = "501";

/// The fields of a response that are written for the store, unless they say the same already.
pub const WRITTEN_FIELDS: [&str; 3] = ["accept-ranges", "cache-control", "date"];

/// An origin's response on its way to the store, as far as the edits depend on it.
#[derive(Debug)]
pub struct OriginResponse<'a> {
    /// The fill that brings it.
    pub fill: FillId,
    /// The whole cache key of the response, which may be that of a variant where its request's is not.
    pub key: &'a str,
    /// The qualifiers that this key has, and the key under which it is stored has not.
    pub variant: Option<&'a str>,
    /// The origin's status.
    pub status: u16,
    /// Number of the newest purge when its request was sent; 0 is none.
    pub purge: u64,
    /// When it came, in seconds since 1970.
    pub received: i64,
    /// The stored response that it freshens, if it is a 304 (RFC 9111, 4.3.4).
    pub freshens: Option<&'a Revalidation>,
    /// `Cache-Control`, its lines joined by commas.
    pub cache_control: Option<JoinedValue<'a>>,
    /// `Date`.
    pub date: Option<FieldValue<'a>>,
    /// `Accept-Ranges`.
    pub accept_ranges: Option<FieldValue<'a>>,
    /// Whether the response still has what it came with of [`WRITTEN_FIELDS`].
    pub is_intact: bool,
    /// `ETag`.
    pub etag: Option<FieldValue<'a>>,
    /// `Last-Modified`, whatever it consists of.
    pub last_modified: Option<FieldValue<'a>>,
    /// Whether there is a `Set-Cookie` that others must not get.
    pub strips_set_cookie: bool,
    /// Whether there is a `Vary`.
    pub has_vary: bool,
    /// What the response varies with, for clients.
    pub vary: Option<FieldValue<'a>>,
}

impl<'a> OriginResponse<'a> {
    /// Makes the response one that Envoy's cache stores for as long as `storage` says.
    pub fn stored(&self, storage: &Storage) -> Vec<HeaderEdit<'_>> {
        let entry = Entry {
            stored: true,
            disguised: storage.disguise,
            ..self.storable_entry(storage)
        };
        let strict = if storage.forbids_stale {
            ", must-revalidate"
        } else {
            ""
        };
        let control = if entry.lifetime.must_be_validated() {
            "no-cache".to_owned()
        } else {
            format!("max-age={}{strict}", entry.lifetime.unasked())
        };
        let mut edits = Vec::new();
        set(&mut edits, ENTRY_HEADER, entry.encode().into());
        self.keep_cache_control(control.into(), &mut edits);
        // Envoy counts freshness from Date, so it must be of this machine's clock, and the time that the
        // response has spent in caches before this one goes into it.
        let date = date::format(self.received.saturating_sub_unsigned(entry.age));
        self.keep_date(Some(&date), &mut edits);
        if !self.says(self.date, &date) {
            set(&mut edits, "date", date.into());
        }
        remove(&mut edits, "age");
        self.strip_cookies(&mut edits);
        if entry.status == 200 && !self.says(self.accept_ranges, "bytes") {
            set(&mut edits, "accept-ranges", "bytes".into());
        }
        if storage.disguise {
            set(&mut edits, ":status", DISGUISE.into());
        }
        match self.freshens {
            Some(stored) => freshen_validator(stored, &mut edits),
            None => self.store_validator(storage, &entry, &mut edits),
        }
        self.hide_vary(&mut edits);
        edits
    }

    /// Makes the response one that Envoy's cache passes on and does not store.
    pub fn unstored(&self) -> Vec<HeaderEdit<'_>> {
        self.passed_by(&self.entry())
    }

    fn passed_by(&self, entry: &Entry<'_>) -> Vec<HeaderEdit<'_>> {
        let mut edits = Vec::new();
        set(&mut edits, ENTRY_HEADER, entry.encode().into());
        if let Some(stored) = self.freshens {
            freshen_validator(stored, &mut edits);
            self.keep_date(None, &mut edits);
        }
        self.keep_cache_control("no-store".into(), &mut edits);
        edits
    }

    /// Makes the response one that Envoy's cache does not store, and of which EDGE gives the followers a copy.
    pub fn shared_once(&self) -> Vec<HeaderEdit<'_>> {
        let entry = Entry {
            shared_once: true,
            ..self.entry()
        };
        self.passed_by(&entry)
    }

    /// Makes the response one that Envoy's cache passes on to its client, and that leaves no trace in the store. A 304 has
    /// the store serve what it has.
    pub fn untraced(&self) -> Vec<HeaderEdit<'_>> {
        let mut edits = Vec::new();
        set(&mut edits, ENTRY_HEADER, self.entry().encode().into());
        if let Some(stored) = self.freshens {
            set_bytes(&mut edits, "etag", stored.unwritten().into());
            remove(&mut edits, "last-modified");
        }
        self.keep_cache_control("no-store".into(), &mut edits);
        edits
    }

    /// Makes the response one that Envoy's cache passes on, or serves what it has for, and that EDGE may share.
    pub fn without_room(&self, storage: &Storage) -> Vec<HeaderEdit<'_>> {
        let entry = self.storable_entry(storage);
        let mut edits = Vec::new();
        set(&mut edits, ENTRY_HEADER, entry.encode().into());
        if let Some(stored) = self.freshens {
            // Envoy's cache writes all of what it freshens anew, and loses it where that fails.
            set_bytes(&mut edits, "etag", stored.unwritten().into());
            remove(&mut edits, "last-modified");
            set(&mut edits, "age", entry.age.to_string().into());
            self.keep_date(None, &mut edits);
        }
        self.strip_cookies(&mut edits);
        self.keep_cache_control("no-store".into(), &mut edits);
        edits
    }

    /// The mark of a response that is not for storing.
    fn entry(&self) -> Entry<'_> {
        let freshened = self.freshens.is_some();
        let stored = self.freshens.and_then(Revalidation::validator);
        Entry {
            fill: self.fill,
            body: stored.map_or(self.fill.body(), |stored| stored.body),
            status: if freshened { 200 } else { self.status },
            lifetime: Lifetime::default(),
            age: 0,
            purge: 0,
            stored: false,
            revalidated: freshened,
            disguised: false,
            shared_once: false,
            allows_authenticated: false,
            key: self.key,
        }
    }

    /// The mark of a response that the policy lets the store have, as `storage` says.
    fn storable_entry(&self, storage: &Storage) -> Entry<'_> {
        Entry {
            lifetime: storage.lifetime,
            age: storage.age,
            purge: self.purge,
            allows_authenticated: storage.allows_authenticated,
            ..self.entry()
        }
    }

    /// Tells the store `control`, and keeps what the origin said for EDGE.
    fn keep_cache_control<'b>(&'b self, control: Cow<'b, str>, edits: &mut Vec<HeaderEdit<'b>>) {
        let own = self.cache_control.as_ref().map(JoinedValue::value);
        if let Some(own) = own {
            set_bytes(edits, STORED_CACHE_CONTROL, own.bytes().into());
        }
        let own = own.filter(|_| self.is_intact);
        if !own.is_some_and(|own| tells(own, &control)) {
            set(edits, "cache-control", control);
        }
    }

    /// Whether a field of the response, whose value is `current`, has that value already. To set it would cost a call of the
    /// host.
    fn says(&self, current: Option<FieldValue<'_>>, value: &str) -> bool {
        self.is_intact && current.is_some_and(|current| current == value)
    }

    /// Keeps the origin's `Date` for EDGE, unless it is the one that the store gets and no former one has been kept.
    fn keep_date<'b>(&'b self, stored: Option<&str>, edits: &mut Vec<HeaderEdit<'b>>) {
        let own = self.date.filter(|own| date::of(*own).is_some());
        let stored = stored.map(FieldValue::from);
        if let Some(own) = own.filter(|own| self.freshens.is_some() || stored != Some(*own)) {
            set_bytes(edits, STORED_DATE, own.bytes().into());
        }
    }

    /// Takes away the `Set-Cookie` of a response that others get too.
    fn strip_cookies(&self, edits: &mut Vec<HeaderEdit<'_>>) {
        if self.strips_set_cookie {
            remove(edits, "set-cookie");
        }
    }

    /// Writes what a later revalidation has to know, and the validators for clients.
    fn store_validator(
        &self,
        storage: &Storage,
        entry: &Entry<'_>,
        edits: &mut Vec<HeaderEdit<'_>>,
    ) {
        let last_modified = self.last_modified;
        let validator = Validator {
            lifetime: entry.lifetime,
            body: entry.fill.body(),
            may_ask: storage.may_ask,
            is_said: storage.is_said,
            variant: self.variant,
            last_modified: last_modified.and_then(date::of),
            etag: self.etag,
        };
        set_bytes(edits, "etag", validator.encode().into());
        if last_modified.is_some() {
            remove(edits, "last-modified");
        }
    }

    /// Hides `Vary` from the store, for which the key says it all.
    fn hide_vary<'b>(&'b self, edits: &mut Vec<HeaderEdit<'b>>) {
        if let Some(vary) = self.vary {
            set_bytes(edits, STORED_VARY, vary.bytes().into());
        }
        if self.has_vary {
            remove(edits, "vary");
        }
    }
}

/// Whether a `Cache-Control` of the origin's, with spaces between its directives, tells the store what `control` does.
fn tells(own: FieldValue<'_>, control: &str) -> bool {
    let Ok(own) = own.text() else {
        return false;
    };
    let meant_for_others = |directive: &&str| matches!(*directive, "public" | "immutable");
    let own = own
        .split(", ")
        .filter(|directive| !meant_for_others(directive));
    own.eq(control.split(", "))
}

/// The store freshens a response only by a 304 with the very `ETag` that it has stored.
fn freshen_validator<'a>(stored: &'a Revalidation, edits: &mut Vec<HeaderEdit<'a>>) {
    set_bytes(edits, "etag", stored.value().into());
    remove(edits, "last-modified");
}

/// Undoes for the client what ORIGIN did to the response for Envoy's cache, `Vary` excepted.
pub fn restored<'a>(entry: &Entry<'_>, fields: &StoredFields<'a>) -> Vec<HeaderEdit<'a>> {
    let mut edits = Vec::new();
    remove(&mut edits, ENTRY_HEADER);
    // The cache filter's own client adds it. A call of the host costs more than a look at what it gave.
    if fields.has_upstream_service_time() {
        remove(&mut edits, UPSTREAM_SERVICE_TIME);
    }
    if fields.hides() {
        remove(&mut edits, HIDDEN_FIELDS);
    }
    if entry.disguised {
        set(&mut edits, ":status", entry.status.to_string().into());
    }
    if let Some(own) = fields.own_cache_control {
        if fields.cache_control != Some(own) {
            set_bytes(&mut edits, "cache-control", own.bytes().into());
        }
        remove(&mut edits, STORED_CACHE_CONTROL);
    } else if fields.has_cache_control() {
        remove(&mut edits, "cache-control");
    }
    if let Some(own) = fields.own_date {
        set_bytes(&mut edits, "date", own.bytes().into());
        remove(&mut edits, STORED_DATE);
    }
    if let Some(validator) = fields.validator() {
        match validator.etag {
            Some(etag) => set_bytes(&mut edits, "etag", etag.bytes().into()),
            None => remove(&mut edits, "etag"),
        }
        if let Some(date) = validator.last_modified() {
            set(&mut edits, "last-modified", date.into());
        }
    }
    edits
}

// Out of line, since every worker compiles the module at its start.
#[inline(never)]
fn set<'a>(edits: &mut Vec<HeaderEdit<'a>>, name: &'a str, value: Cow<'a, str>) {
    edits.push(HeaderEdit::set(name, value));
}

#[inline(never)]
fn set_bytes<'a>(edits: &mut Vec<HeaderEdit<'a>>, name: &'a str, value: Cow<'a, [u8]>) {
    edits.push(HeaderEdit::Set(name, value));
}

#[inline(never)]
fn remove<'a>(edits: &mut Vec<HeaderEdit<'a>>, name: &'a str) {
    edits.push(HeaderEdit::Remove(name));
}

#[cfg(test)]
mod tests;
