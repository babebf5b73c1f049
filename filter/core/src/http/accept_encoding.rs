// SPDX-License-Identifier: Apache-2.0
//! `Accept-Encoding` (RFC 9110, 12.5.3), reduced to the one coding that the edge answers with, or to the codings that
//! an origin may choose from.

use crate::http::syntax::field_value::FieldValue;

/// A content coding that the edge serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstd,
    /// RFC 1952.
    Gzip,
}

impl Coding {
    /// Name of the coding in `Content-Encoding`.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// Returns the coding with the name `token`, in any case; `x-gzip` is gzip (RFC 9110, 8.4.1.3).
    pub fn of(token: &str) -> Option<Self> {
        let is_gzip = token.eq_ignore_ascii_case("x-gzip");
        let name = if is_gzip { "gzip" } else { token };
        let mut codings = [Self::Brotli, Self::Zstd, Self::Gzip].into_iter();
        codings.find(|coding| coding.token().eq_ignore_ascii_case(name))
    }
}

/// Returns the coding of `codings` to which a request's `Accept-Encoding` gives the highest weight, the first one if
/// several have the same weight. `None` means no coding at all (`identity`).
///
/// A request without the header gets no coding. A request that refuses `identity` and all of `codings` also gets no
/// coding, because a response that the client may not accept is better than none. Members that do not parse are
/// ignored.
pub fn negotiate(accept_encoding: Option<FieldValue<'_>>, codings: &[Coding]) -> Option<Coding> {
    let header = accept_encoding?;
    let weighed = codings
        .iter()
        .map(|&coding| (weight_for(header, coding), coding));
    // `max_by_key` returns the last of equal weights, which is the first of `codings`.
    let (weight, coding) = weighed.rev().max_by_key(|(weight, _)| *weight)?;
    let identity = named_weight(header, |token| token.eq_ignore_ascii_case("identity"));
    (weight > 0 && weight >= identity.unwrap_or(0)).then_some(coding)
}

/// Returns the codings of `codings` that a request's `Accept-Encoding` accepts, in the order of `codings`. Three
/// codings have at most eight such sets.
pub fn accepted(accept_encoding: Option<FieldValue<'_>>, codings: &[Coding]) -> Vec<Coding> {
    let takes =
        |coding: &Coding| accept_encoding.is_some_and(|header| weight_for(header, *coding) > 0);
    codings.iter().copied().filter(takes).collect()
}

/// A quality value in thousandths.
type Weight = u16;

/// Returns the weight of a coding, given by its name or by `*`; 0 if the header has neither.
fn weight_for(header: FieldValue<'_>, coding: Coding) -> Weight {
    let named = named_weight(header, |token| Coding::of(token) == Some(coding));
    let any = || named_weight(header, |token| token == "*");
    named.or_else(any).unwrap_or(0)
}

/// Returns the weight of the first member with such a name.
fn named_weight(header: FieldValue<'_>, is_named: impl Fn(&str) -> bool) -> Option<Weight> {
    let mut members = header.members().flatten();
    members.find_map(|member| {
        let token = member.split(';').next().unwrap_or_default().trim();
        weight_of(member).filter(|_| is_named(token))
    })
}

/// Returns the weight of a member of a list of preferences (RFC 9110, 12.4.2) in thousandths, 1000 if the member has
/// no weight; `None` if the member does not parse.
pub fn weight_of(member: &str) -> Option<u16> {
    let mut weight = 1_000;
    let parameters = member.split(';').skip(1).map(str::trim);
    for parameter in parameters.filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=')?;
        if name.trim().eq_ignore_ascii_case("q") {
            weight = thousandths(value.trim())?;
        }
    }
    Some(weight)
}

/// Parses `0`, `0.123`, `1` and `1.000`.
fn thousandths(value: &str) -> Option<Weight> {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: Weight = format!("{fraction:0<3}").parse().ok()?;
    match whole {
        "0" => Some(fraction),
        "1" if fraction == 0 => Some(1_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Coding::{Brotli, Gzip, Zstd};
    use super::*;

    const ALL: [Coding; 3] = [Brotli, Zstd, Gzip];

    #[test]
    fn the_heaviest_coding_that_the_edge_serves_is_chosen() {
        for (header, expected) in [
            ("gzip, deflate, br, zstd", Some(Brotli)),
            ("gzip, deflate", Some(Gzip)),
            ("zstd, gzip", Some(Zstd)),
            ("GZIP", Some(Gzip)),
            ("x-gzip", Some(Gzip)),
            ("deflate", None),
            ("", None),
            ("identity", None),
            ("*", Some(Brotli)),
            ("*;q=0", None),
            ("br;q=0, *", Some(Zstd)),
            ("br;q=0.5, gzip;q=0.8", Some(Gzip)),
            ("br;q=0.5, gzip;q=0.5", Some(Brotli)),
            ("gzip;q=1.0, br;q=0.999", Some(Gzip)),
            ("gzip;q=0", None),
            ("gzip;q=0.000", None),
            ("gzip;q=0.001", Some(Gzip)),
            ("identity, gzip;q=0.5", None),
            ("identity;q=0.5, gzip", Some(Gzip)),
            ("identity;q=0.5, gzip;q=0.5", Some(Gzip)),
            ("identity;q=0, gzip;q=0.1", Some(Gzip)),
            ("identity;q=0", None),
            ("identity;q=0, *;q=0", None),
            (" gzip ; q = 0.7 ,br;Q=0.9", Some(Brotli)),
            ("gzip;q=2", None),
            ("gzip;q=1.001", None),
            ("gzip;q=0.1234", None),
            ("gzip;q=", None),
            ("gzip;q=-1", None),
            ("gzip;q", None),
            ("gzip;q=x, br", Some(Brotli)),
            ("gzip;level=9", Some(Gzip)),
            (",,gzip;,", Some(Gzip)),
            ("gzip;q=0, gzip", None),
        ] {
            assert_eq!(negotiate(Some(header.into()), &ALL), expected, "{header:?}");
        }
        assert_eq!(negotiate(None, &ALL), None);
    }

    #[test]
    fn an_origin_chooses_from_all_that_the_client_takes() {
        for (header, expected) in [
            ("gzip, deflate, br, zstd", &[Brotli, Zstd, Gzip][..]),
            ("gzip, deflate, br", &[Brotli, Gzip]),
            ("gzip;q=1.0, br;q=0.1", &[Brotli, Gzip]),
            ("br;q=0, *", &[Zstd, Gzip]),
            ("x-gzip", &[Gzip]),
            ("gzip;q=0, identity", &[]),
            ("deflate", &[]),
            ("", &[]),
        ] {
            assert_eq!(accepted(Some(header.into()), &ALL), expected, "{header:?}");
        }
        assert_eq!(accepted(None, &ALL), []);
        assert_eq!(accepted(Some("*".into()), &[Gzip]), [Gzip]);
    }

    #[test]
    fn the_policys_order_decides_between_equals_and_leaves_out_what_is_not_served() {
        let header = Some("br, gzip, zstd".into());
        assert_eq!(negotiate(header, &[Gzip, Brotli]), Some(Gzip));
        assert_eq!(negotiate(header, &[Zstd]), Some(Zstd));
        assert_eq!(negotiate(header, &[]), None);
        assert_eq!(negotiate(Some("*".into()), &[Gzip]), Some(Gzip));
    }

    proptest! {
        #[test]
        fn any_header_comes_to_something_that_it_accepts(header in ".{0,60}") {
            if let Some(coding) = negotiate(Some((&*header).into()), &ALL) {
                let lower = header.to_ascii_lowercase();
                prop_assert!(lower.contains(coding.token()) || lower.contains('*'));
            }
        }

        #[test]
        fn what_is_refused_is_never_chosen(
            coding in 0..3_usize, others in "(, *(br|zstd|gzip|\\*|identity)(;q=0\\.[1-9])?){0,4}",
        ) {
            let refused = ALL[coding];
            let header = format!("{};q=0{others}", refused.token());
            prop_assert_ne!(negotiate(Some((&*header).into()), &ALL), Some(refused));
        }
    }
}
