// SPDX-License-Identifier: Apache-2.0
//! Events of the world, in any order.

use proptest::prelude::*;
use sluice_fake::Answer;

/// Number of keys. The number is small, so that requests meet.
pub const KEYS: u64 = 3;

/// An event. Small numbers identify workers and keys. They identify requests by their position among the requests
/// under way.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Get { worker: u8, key: u8 },
    Head { worker: u8, key: u8 },
    Range { worker: u8, key: u8 },
    Conditional { worker: u8, key: u8 },
    LeaveWith304 { client: u8 },
    Answer { fetch: u8, answer: Answer },
    Progress { fetch: u8 },
    End { fetch: u8 },
    Reset { fetch: u8 },
    Abort { client: u8 },
    Close { client: u8 },
    Deliver { worker: u8 },
    Lose { worker: u8 },
    Commit { key: u8 },
    DropCommits { key: u8 },
    Evict { key: u8 },
    AnswerLookup { worker: u8 },
    LoseLookup { worker: u8 },
    Tick { worker: u8 },
    TickAll,
    Rescan { worker: u8 },
    SlowAborts { slow: bool },
    CarryOutAborts,
    LoseAborts,
    HoldCalls { hold: bool },
    SendCalls { worker: u8 },
    HoldTurns { hold: bool },
    TakeTurns,
    Advance { millis: u16 },
    Kill { worker: u8 },
    Revive { worker: u8 },
    LoseWrites { count: u8 },
    FailCalls { count: u8 },
    Purge { worker: u8, key: u8, soft: bool },
    Fill { full: bool },
}

/// Events without any failure.
pub fn ordinary() -> impl Strategy<Value = Step> {
    let small = || 0..8_u8;
    prop_oneof![
        6 => (small(), small()).prop_map(|(worker, key)| Step::Get { worker, key }),
        2 => (small(), small()).prop_map(|(worker, key)| Step::Conditional { worker, key }),
        3 => small().prop_map(|fetch| Step::Answer { fetch, answer: Answer::Storable }),
        1 => small().prop_map(|fetch| Step::Progress { fetch }),
        3 => small().prop_map(|fetch| Step::End { fetch }),
        2 => small().prop_map(|client| Step::Close { client }),
        3 => small().prop_map(|worker| Step::Deliver { worker }),
        2 => small().prop_map(|key| Step::Commit { key }),
        3 => small().prop_map(|worker| Step::AnswerLookup { worker }),
        2 => small().prop_map(|worker| Step::Tick { worker }),
        1 => small().prop_map(|worker| Step::Rescan { worker }),
        3 => Just(Step::TickAll),
        4 => (0..60_u16).prop_map(|millis| Step::Advance { millis }),
        1 => (0..30_u8).prop_map(|count| Step::LoseWrites { count }),
    ]
}

/// A client leaves after its complete response, which arrived before its fill has ended.
pub fn leaving() -> impl Strategy<Value = Step> {
    (0..8_u8).prop_map(|client| Step::LeaveWith304 { client })
}

/// All events except faults of the board and purges.
pub fn anything() -> impl Strategy<Value = Step> {
    let small = || 0..8_u8;
    let unwanted = prop_oneof![
        Just(Answer::Uncacheable),
        Just(Answer::Silent),
        Just(Answer::Failed(503)),
        // The request itself may have caused this error.
        Just(Answer::Failed(400)),
        Just(Answer::Unchanged)
    ];
    prop_oneof![
        24 => ordinary(),
        1 => (small(), small()).prop_map(|(worker, key)| Step::Head { worker, key }),
        3 => (small(), small()).prop_map(|(worker, key)| Step::Range { worker, key }),
        1 => any::<bool>().prop_map(|hold| Step::HoldCalls { hold }),
        1 => small().prop_map(|worker| Step::SendCalls { worker }),
        2 => (small(), unwanted).prop_map(|(fetch, answer)| Step::Answer { fetch, answer }),
        1 => leaving(),
        1 => small().prop_map(|fetch| Step::Reset { fetch }),
        4 => (0..32_u8).prop_map(|client| Step::Abort { client }),
        2 => small().prop_map(|worker| Step::Lose { worker }),
        1 => small().prop_map(|worker| Step::LoseLookup { worker }),
        1 => any::<bool>().prop_map(|slow| Step::SlowAborts { slow }),
        1 => Just(Step::CarryOutAborts),
        1 => Just(Step::LoseAborts),
        1 => small().prop_map(|key| Step::DropCommits { key }),
        1 => small().prop_map(|key| Step::Evict { key }),
        1 => small().prop_map(|worker| Step::Kill { worker }),
        1 => small().prop_map(|worker| Step::Revive { worker }),
        2 => (0..7_000_u16).prop_map(|millis| Step::Advance { millis }),
    ]
}

/// All events of [`anything`], and faults of the board.
pub fn anything_and_board_faults() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => anything(),
        1 => (0..80_u8).prop_map(|count| Step::LoseWrites { count }),
        1 => (0..4_u8).prop_map(|count| Step::FailCalls { count }),
    ]
}

/// All events of [`anything`], purges, a full disk, responses that vary, and late turns. Each message is delivered,
/// because Envoy loses no message to a live worker.
pub fn anything_and_purges() -> impl Strategy<Value = Step> {
    let small = || 0..8_u8;
    let lossless = anything().prop_map(|step| match step {
        Step::Lose { worker } => Step::Deliver { worker },
        step => step,
    });
    prop_oneof![
        24 => lossless,
        2 => (small(), small(), any::<bool>())
            .prop_map(|(worker, key, soft)| Step::Purge { worker, key, soft }),
        1 => any::<bool>().prop_map(|full| Step::Fill { full }),
        1 => any::<bool>().prop_map(|hold| Step::HoldTurns { hold }),
        2 => Just(Step::TakeTurns),
        1 => small().prop_map(|fetch| Step::Answer { fetch, answer: Answer::Varying }),
    ]
}

/// Policies whose bounds are sometimes reached.
pub fn policy() -> impl Strategy<Value = String> {
    let waiters = prop_oneof![1 => 1..4_usize, 3 => Just(10_000)];
    let keys = prop_oneof![1 => 1..3_usize, 3 => Just(8_192)];
    let hot_bytes = prop_oneof![Just(0), Just(100_000)];
    (waiters, keys, hot_bytes).prop_map(|(waiters, keys, hot_bytes)| {
        format!(
            r#"{{"origin": {{"kind": "http"}}, "purge": {{"warm": false}}, "limits":
            {{"hints": 64, "varying_urls": 64, "waiters_per_key": {waiters}, "keys_in_flight": {keys}}},
            "hot": {{"max_bytes": {hot_bytes}}}}}"#
        )
    })
}

/// Lifetime of responses in seconds: unlimited, or so short that they expire between steps and while they arrive.
pub fn ttl() -> impl Strategy<Value = u64> {
    prop_oneof![Just(3_600), 1..3_u64]
}
