// SPDX-License-Identifier: Apache-2.0
//! The bound on the responses in slices of one client's connection, and the requests that wait for their turn.

use std::collections::VecDeque;

use crate::workers::{NumberMap, StreamId};

/// Envoy's number of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId(pub u64);

/// The responses of one connection.
#[derive(Debug, Default)]
struct Connection {
    running: usize,
    waiting: VecDeque<StreamId>,
}

/// The connections of a worker that have responses in slices.
#[derive(Debug, Default)]
pub struct SlicedConnections {
    connections: NumberMap<ConnectionId, Connection>,
    running: usize,
}

impl SlicedConnections {
    /// Begins a response. Returns false if the connection has `most` responses already: its request waits.
    pub fn begin(&mut self, id: ConnectionId, stream: StreamId, most: usize) -> bool {
        let connection = self.connections.entry(id).or_default();
        let begins = connection.running < most;
        if begins {
            connection.running += 1;
            self.running += 1;
        } else {
            connection.waiting.push_back(stream);
        }
        begins
    }

    /// Ends a response. Returns the requests of the connection that wait, in their order. Each of them begins or waits
    /// again, because the first one may need its turn no more.
    pub fn end(&mut self, id: ConnectionId) -> VecDeque<StreamId> {
        let Some(connection) = self.connections.get_mut(&id) else {
            return VecDeque::new();
        };
        connection.running = connection.running.saturating_sub(1);
        self.running = self.running.saturating_sub(1);
        let waiting = std::mem::take(&mut connection.waiting);
        if connection.running == 0 {
            self.connections.remove(&id);
        }
        waiting
    }

    /// Forgets a request that waits, because its client has left.
    pub fn leave(&mut self, id: ConnectionId, stream: StreamId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.waiting.retain(|waiting| *waiting != stream);
        }
    }

    /// The number of responses under way.
    pub const fn running(&self) -> usize {
        self.running
    }
}

#[cfg(test)]
mod tests {
    use crate::slices::connections::*;

    const ONE: ConnectionId = ConnectionId(1);
    const OTHER: ConnectionId = ConnectionId(2);

    #[test]
    fn requests_beyond_the_bound_wait_for_a_response_of_their_connection() {
        let mut connections = SlicedConnections::default();
        for stream in 0..2 {
            assert!(connections.begin(ONE, StreamId(stream), 2));
        }
        for stream in 2..5 {
            assert!(!connections.begin(ONE, StreamId(stream), 2));
        }
        assert!(connections.begin(OTHER, StreamId(9), 2));
        assert_eq!(connections.running(), 3);
        connections.leave(ONE, StreamId(3));
        assert!(connections.end(OTHER).is_empty());
        assert_eq!(connections.end(ONE), [StreamId(2), StreamId(4)]);
        assert!(connections.begin(ONE, StreamId(2), 2));
        assert!(!connections.begin(ONE, StreamId(4), 2));
        assert_eq!(connections.end(ONE), [StreamId(4)]);
        assert_eq!(connections.running(), 1);
    }

    #[test]
    fn nothing_is_left_of_a_connection_without_responses() {
        let mut connections = SlicedConnections::default();
        assert!(connections.begin(ONE, StreamId(0), 1));
        assert!(!connections.begin(ONE, StreamId(1), 1));
        assert_eq!(connections.end(ONE), [StreamId(1)]);
        connections.leave(ONE, StreamId(1));
        assert!(connections.end(ONE).is_empty());
        assert!(connections.connections.is_empty());
        assert_eq!(connections.running(), 0);
    }
}
