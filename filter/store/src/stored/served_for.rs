// SPDX-License-Identifier: Apache-2.0
//! How long Envoy's stores serve a response without asking the origin.

use sluice_core::http::caching::cache_control::CacheControl;
use sluice_core::http::syntax::date;
use sluice_core::http::syntax::field_value::FieldValue;
use sluice_core::workers::Millis;

/// Returns the milliseconds for which a store serves a response with these headers unchanged. `now` is in
/// milliseconds since 1970. Only the headers are reliable, because a response that the origin has failed to confirm
/// gets a longer `max-age`, which is recorded in no other place.
///
/// A store counts whole seconds from `Date`. It asks the origin when their number exceeds `max-age`.
pub fn served_for(cache_control: FieldValue<'_>, date: FieldValue<'_>, now: Millis) -> Millis {
    let max_age = CacheControl::parse(cache_control).max_age;
    let date = date::of(date).and_then(|date| u64::try_from(date).ok());
    let (Some(max_age), Some(date)) = (max_age, date) else {
        return 0;
    };
    let asks_from = date.saturating_add(max_age).saturating_add(1);
    asks_from.saturating_mul(1_000).saturating_sub(now)
}

#[cfg(test)]
mod tests {
    use super::Millis;

    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const MILLIS: Millis = 784_111_777_000;

    fn served_for(cache_control: &str, date: &str, now: Millis) -> Millis {
        super::served_for(cache_control.into(), date.into(), now)
    }

    #[test]
    fn a_store_serves_until_the_second_after_max_age_has_passed() {
        let left = |now| served_for("max-age=2, must-revalidate", DATE, now);
        assert_eq!(left(MILLIS), 3_000);
        assert_eq!(left(MILLIS + 2_999), 1);
        assert_eq!(left(MILLIS + 3_000), 0);
        assert_eq!(left(MILLIS + 9_000), 0);
    }

    #[test]
    fn what_is_not_for_storing_is_not_served() {
        assert_eq!(served_for("no-store", DATE, MILLIS), 0);
        assert_eq!(served_for("max-age=2", "soon", MILLIS), 0);
        assert_eq!(served_for("", "", MILLIS), 0);
    }

    #[test]
    fn no_number_is_too_large() {
        assert!(served_for("max-age=18446744073709551615", DATE, 0) > 0);
    }
}
