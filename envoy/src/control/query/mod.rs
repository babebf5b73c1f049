// SPDX-License-Identifier: Apache-2.0
//! The query language of `sluice log`: terms such as `site=shop`, `result!=hit` or `duration>500ms`, joined by spaces.
//! A request is shown if all terms apply.

mod field;
mod term;

use std::fmt;
use std::str::FromStr;

use crate::control::answers::Decision;
use field::FIELDS;
use term::Term;

/// A query.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<Term>);

/// The fault of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError(String);

impl fmt::Display for QueryError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for QueryError {}

impl FromStr for Query {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, QueryError> {
        let terms = text.split_ascii_whitespace().map(Term::parse);
        Ok(Self(terms.collect::<Result<_, _>>()?))
    }
}

impl Query {
    /// Whether all terms apply to a request.
    pub fn matches(&self, decision: &Decision) -> bool {
        self.0.iter().all(|term| term.matches(decision))
    }

    /// The help about the language.
    pub fn help() -> String {
        let fields: Vec<_> = FIELDS.iter().map(|(name, _)| *name).collect();
        format!(
            "Terms FIELD OPERATOR VALUE without spaces, such as duration>500ms; all of them must apply. Fields: {}. \
             Operators: = and != for all of them, ~ and !~ (contains) for texts, <, <=, > and >= for numbers",
            fields.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision() -> Decision {
        Decision {
            site: Some("shop".to_owned()),
            host: "shop.example.com".to_owned(),
            method: "GET".to_owned(),
            path: "/img/hero.avif".to_owned(),
            status: Some(200),
            result: Some("miss".to_owned()),
            duration_ms: 2310,
            origin_ms: Some(2290),
            bytes: 4096,
            not_stored: Some("no-lifetime".to_owned()),
            ..Decision::default()
        }
    }

    fn matches(query: &str) -> bool {
        query.parse::<Query>().unwrap().matches(&decision())
    }

    #[test]
    fn all_terms_must_apply() {
        for query in [
            "",
            "site=shop result!=hit duration>500ms",
            "path~/img/  path!~/css/",
            "status=200 status>=200 status<300",
            "bytes=4KiB bytes<=4096 bytes>1KiB",
            "origin<3s duration!=1s",
            "not_stored=no-lifetime method=GET host~example",
            "request_id!=abc",
        ] {
            assert!(matches(query), "{query}");
        }
        for query in [
            "site=shop result=hit",
            "duration<=500ms",
            "path~/css/",
            "status>200",
            "request_id=abc",
            "not_stored!=no-lifetime",
        ] {
            assert!(!matches(query), "{query}");
        }
    }

    #[test]
    fn an_absent_number_is_neither_small_nor_large() {
        for query in ["waited>1ms", "waited<1ms", "waited=0ms"] {
            assert!(!matches(query), "{query}");
        }
        assert!(matches("waited!=1ms"));
    }

    #[test]
    fn an_error_names_the_field_the_operator_and_what_is_accepted() {
        for (query, message) in [
            (
                "duraton>1s",
                "\"duraton\" of duraton>1s: expected a field: site, host, method, path, status, result, duration, \
                 waited, origin, bytes, not_stored or request_id",
            ),
            (
                "shop",
                "shop: expected FIELD OPERATOR VALUE, such as site=shop",
            ),
            (
                "=shop",
                "=shop: expected FIELD OPERATOR VALUE, such as site=shop",
            ),
            (
                "site=",
                "site=: expected FIELD OPERATOR VALUE, such as site=shop",
            ),
            (
                "path>3",
                "path>3: the operators of path are =, !=, ~ and !~",
            ),
            (
                "status~4",
                "status~4: the operators of status are =, !=, <, <=, > and >=",
            ),
            (
                "duration>500",
                "duration>500: expected a duration such as 250ms, 5s, 1h30m or 30d",
            ),
            (
                "status=5xx",
                "status=5xx: expected a status from 100 to 599",
            ),
            (
                "bytes>x",
                "bytes>x: expected a number of bytes, plain or with KiB, MiB, GiB or TiB",
            ),
        ] {
            assert_eq!(
                query.parse::<Query>().unwrap_err().to_string(),
                message,
                "{query}"
            );
        }
    }
}
