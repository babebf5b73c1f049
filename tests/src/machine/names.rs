// SPDX-License-Identifier: Apache-2.0
//! A name server (RFC 1035) with the names of a test, for one edge or several.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// The bytes of a message's header.
const HEADER: usize = 12;
/// The type of an IPv4 address, as a record and as a question.
const A: u16 = 1;
/// The code of an answer about a name that does not exist (NXDOMAIN).
const NO_SUCH_NAME: u8 = 3;
/// Seconds for which an answer may be kept.
const TTL: u32 = 1;

#[derive(Default)]
struct Table {
    names: BTreeMap<String, Vec<Ipv4Addr>>,
    is_silent: bool,
}

/// The server. It ends when dropped.
pub struct NameServer {
    address: SocketAddr,
    table: Arc<Mutex<Table>>,
    task: JoinHandle<()>,
}

impl NameServer {
    /// Starts without a name.
    ///
    /// # Panics
    /// When no socket can be created.
    pub async fn start() -> Self {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into()).await
    }

    /// Starts without a name at this address.
    ///
    /// # Panics
    /// When the address is not free.
    pub async fn start_at(address: SocketAddr) -> Self {
        let socket = UdpSocket::bind(address).await.unwrap();
        let address = socket.local_addr().unwrap();
        let table = Arc::<Mutex<Table>>::default();
        let task = tokio::spawn(serve(socket, Arc::clone(&table)));
        Self {
            address,
            table,
            task,
        }
    }

    /// Sets the addresses of a name; none: the name does not exist.
    pub fn set(&self, name: &str, addresses: &[Ipv4Addr]) {
        let mut table = self.table.lock().unwrap();
        match addresses {
            [] => table.names.remove(name),
            _ => table.names.insert(name.to_owned(), addresses.to_vec()),
        };
    }

    /// Answers no question from now on, or answers again.
    pub fn set_silent(&self, is_silent: bool) {
        self.table.lock().unwrap().is_silent = is_silent;
    }

    /// Envoy's configuration that has an edge ask this server, for `Builder::more_configuration`.
    #[must_use]
    pub fn configuration(&self) -> Value {
        let kind = "envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig";
        let socket = json!({ "address": self.address.ip(), "port_value": self.address.port() });
        json!({ "typed_dns_resolver_config": {
            "name": "envoy.network.dns_resolver.cares",
            "typed_config": {
                "@type": format!("type.googleapis.com/{kind}"),
                "resolvers": [{ "socket_address": socket }],
                "dns_resolver_options": { "no_default_search_domain": true },
                "query_timeout_seconds": 1,
                "query_tries": 1,
            },
        } })
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(socket: UdpSocket, table: Arc<Mutex<Table>>) {
    let mut question = [0; 512];
    while let Ok((length, from)) = socket.recv_from(&mut question).await {
        let answer = answer(&question[..length], &table.lock().unwrap());
        if let Some(answer) = answer {
            // The asker may be gone.
            let _ = socket.send_to(&answer, from).await;
        }
    }
}

/// The answer to a message with one question.
fn answer(question: &[u8], table: &Table) -> Option<Vec<u8>> {
    let (labels, end) = name(question)?;
    let asked = question.get(end..end + 2)?;
    let addresses = table.names.get(&labels);
    let is_for_addresses = u16::from_be_bytes([asked[0], asked[1]]) == A;
    let found = addresses.filter(|_| is_for_addresses);
    let found = found.map_or(&[][..], Vec::as_slice);
    let code = if addresses.is_none() { NO_SUCH_NAME } else { 0 };
    let mut message = question[..2].to_vec();
    // A response, with recursion.
    message.extend([0x81, 0x80 | code, 0, 1]);
    message.extend(u16::try_from(found.len()).ok()?.to_be_bytes());
    message.extend([0; 4]);
    message.extend(question.get(HEADER..end + 4)?);
    for address in found {
        // The name of the question, and the class of the Internet.
        message.extend([0xc0, 0x0c, 0, 1, 0, 1]);
        message.extend(TTL.to_be_bytes());
        message.extend([0, 4]);
        message.extend(address.octets());
    }
    (!table.is_silent).then_some(message)
}

/// The name in a question, and the place behind it.
fn name(question: &[u8]) -> Option<(String, usize)> {
    let (mut labels, mut at) = (Vec::new(), HEADER);
    loop {
        let length = usize::from(*question.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join(".").to_ascii_lowercase(), at));
        }
        let label = question.get(at..at + length)?;
        labels.push(String::from_utf8_lossy(label).into_owned());
        at += length;
    }
}
