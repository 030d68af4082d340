//! Taking in connections.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{SocketFlags, sockopt};

use super::Core;
use super::client::{Client, Door};

/// Connections taken in a turn at the most, so that a flood of them does not starve the others.
const ACCEPTED_AT_ONCE: usize = 64;

impl Core {
    pub(super) fn accept(&mut self, door: Door) {
        for _ in 0..ACCEPTED_AT_ONCE {
            let listener = match door {
                Door::Shared => &self.listeners.shared,
                Door::Shard => &self.listeners.shard,
            };
            match rustix::net::acceptfrom_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok((socket, address)) => {
                    let peer = address.and_then(|address| SocketAddr::try_from(address).ok());
                    self.admit(socket, peer, door);
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                // Nothing more to accept, or no descriptor left: the others go on, and the next turn tries again.
                Err(_) => return,
            }
        }
    }

    fn admit(&mut self, socket: OwnedFd, peer: Option<SocketAddr>, door: Door) {
        self.counters.connections += 1;
        let connected = self.process.connected.fetch_add(1, Ordering::Relaxed);
        if connected >= self.configuration.max_clients {
            self.process.connected.fetch_sub(1, Ordering::Relaxed);
            self.counters.rejected_connections += 1;
            let _ = rustix::io::write(&socket, b"-ERR max number of clients reached\r\n");
            return;
        }
        let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
        let local = rustix::net::getsockname(&socket)
            .ok()
            .and_then(|address| SocketAddr::try_from(address).ok())
            .unwrap_or(unknown);
        let _ = sockopt::set_tcp_nodelay(&socket, true);
        if self.configuration.tcp_keepalive_s > 0 {
            let interval = std::time::Duration::from_secs(self.configuration.tcp_keepalive_s);
            let _ = sockopt::set_socket_keepalive(&socket, true);
            let _ = sockopt::set_tcp_keepidle(&socket, interval);
            let _ = sockopt::set_tcp_keepintvl(&socket, (interval / 3).max(std::time::Duration::from_secs(1)));
            let _ = sockopt::set_tcp_keepcnt(&socket, 3);
        }
        let id = self.process.next_client_id();
        let mut client = Client::new(socket, id, door, peer.unwrap_or(unknown), local, self.now_ms);
        client.authenticated = self.configuration.require_pass.is_empty();
        let key = self.clients.add(client);
        let client = self.clients.get(key).expect("added just now");
        let data = epoll::EventData::new_u64(key.to_token());
        if epoll::add(&self.epoll, &client.socket, data, epoll::EventFlags::IN).is_err() {
            self.close(key);
        }
    }
}
