// SPDX-License-Identifier: Apache-2.0
//! Tests of the messages.

use super::*;
use crate::freshness::UncacheableReason;
use crate::policy::purge::{FeedId, Kind, Scope};
use crate::workers::{FlightId, OwnHeaders};

fn flights() -> impl Iterator<Item = Message> {
    let outcomes = [
        FlightOutcome::Stored {
            until: u64::MAX,
            small: true,
        },
        FlightOutcome::Found {
            until: 4,
            small: false,
        },
        FlightOutcome::HitForMiss {
            until: 3,
            reason: UncacheableReason::Vary,
        },
        FlightOutcome::Failed { status: 503 },
        FlightOutcome::NothingShared,
        FlightOutcome::Own {
            doubt: Doubt::Failed,
            own_headers: OwnHeaders(u64::MAX),
        },
        FlightOutcome::Own {
            doubt: Doubt::NotStored,
            own_headers: OwnHeaders::NONE,
        },
        FlightOutcome::Kept { until: 9 },
        FlightOutcome::Validated { at: 8 },
        FlightOutcome::NoRoom,
        FlightOutcome::Sliced,
        FlightOutcome::Varies {
            names: VaryNames::parse("accept,x-plan"),
        },
    ];
    let events = outcomes.map(Event::Ended).into_iter();
    events.chain([Event::Awaited]).map(|event| {
        Message::Flight(FlightMessage {
            key: KeyHash(0xdead_beef),
            flight: FlightId {
                worker: WorkerId(258),
                sequence: 0x0304_0506,
            },
            event,
        })
    })
}

fn others() -> [Message; 10] {
    let record = |number, scope| Record {
        number,
        kind: Kind::Hard,
        scope,
    };
    [
        Message::Purged {
            caller: WorkerId(7),
            call: 9,
            records: vec![
                record(1, Scope::Everything),
                record(2, Scope::Prefix("a/b".into())),
            ],
        },
        Message::Acknowledged {
            worker: WorkerId(u16::MAX),
            call: u32::MAX,
        },
        Message::Varies {
            plain: KeyHash(u64::MAX),
            flight: KeyHash(2),
            plain_variant: KeyHash(3),
            names: VaryNames::parse("accept,x-plan"),
        },
        Message::BodyLength {
            worker: WorkerId(8),
            key: KeyHash(1),
            body: BodyId(u64::MAX),
            bytes: 1 << 40,
        },
        Message::SliceIndex {
            key: KeyHash(5),
            url: LargeUrl(6),
            index: b"index".to_vec(),
        },
        Message::SlicesChanged {
            key: KeyHash(6),
            etag: "\"v1\"".to_owned(),
        },
        Message::Asked {
            asker: WorkerId(3),
            call: 258,
            question: "/flights".into(),
        },
        Message::Answered {
            worker: WorkerId(4),
            call: 259,
            answer: "\"flights\":[]".into(),
        },
        Message::FeedLines {
            told: Some(FeedPosition {
                id: FeedId(42),
                number: u64::MAX,
            }),
        },
        Message::FeedLines { told: None },
    ]
}

#[test]
fn every_message_round_trips() {
    for message in flights().chain(others()) {
        assert_eq!(Message::decode(&message.encode()), Some(message));
    }
}

#[test]
fn foreign_bytes_are_no_message() {
    for bytes in [
        &b""[..],
        b"wake up!",
        b"P1234567890",
        &[FORMAT],
        &[FORMAT, u8::MAX, 0, 0, 0, 0],
    ] {
        assert_eq!(Message::decode(bytes), None, "{bytes:?}");
    }
    for message in flights().chain(others()) {
        let bytes = message.encode();
        let mut older = bytes.clone();
        older[0] = FORMAT - 1;
        assert_eq!(Message::decode(&older), None, "another format: {message:?}");
        let is_open_ended = matches!(message, Message::SliceIndex { .. });
        let longer = Message::decode(&[&bytes[..], b"\xff"].concat());
        assert!(longer.is_none() || is_open_ended, "{message:?}");
    }
}
