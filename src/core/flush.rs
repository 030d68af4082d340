//! Sending replies, and ending connections.

use std::sync::atomic::Ordering;

use rustix::io::Errno;
use rustix::net::SendFlags;

use super::Core;
use super::client::ClientKey;
use super::mailbox::{Message, Task};
use super::waiting::{Ending, Place};

/// Buffers kept for the next clients, and how large a kept buffer may be.
const SPARE_BUFFERS: usize = 256;
const SPARE_BYTES: usize = 64 << 10;

impl Core {
    /// Has the client's output sent at the end of the turn.
    #[inline]
    pub fn want_flush(&mut self, key: ClientKey) {
        if let Some(client) = self.clients.get_mut(key)
            && !client.to_flush
        {
            client.to_flush = true;
            self.to_flush.push(key);
        }
    }

    /// Sends what the turn has written: the last first, so that a client that has waited gets what it waited for before
    /// the one that brought it gets its reply.
    pub(super) fn flush_clients(&mut self) {
        let mut keys = std::mem::take(&mut self.to_flush);
        for key in keys.drain(..).rev() {
            self.flush_client(key);
        }
        if self.to_flush.is_empty() {
            self.to_flush = keys;
        }
    }

    /// Sends as much of a client's output as its socket takes.
    pub(super) fn flush_client(&mut self, key: ClientKey) {
        let may_send = self.may_send_replies(key);
        let Some(client) = self.clients.get_mut(key) else { return };
        client.to_flush = false;
        // What has the client's command run holds the output, and has it flushed when it gives it back.
        if !may_send || client.writing {
            return;
        }
        let may_be_over = client.over_limit || client.output.len() - client.sent > self.most_unsent;
        if may_be_over && client.is_over_limit(self.most_unsent) {
            // As in Redis nothing of what passed the limit is sent.
            self.counters.output_limit_disconnections += 1;
            self.close(key);
            return;
        }
        while client.sent < client.output.len() {
            match rustix::net::send(&client.socket, &client.output[client.sent..], SendFlags::NOSIGNAL) {
                Ok(len) => {
                    client.sent += len;
                    client.bytes_out += len as u64;
                    self.counters.bytes_out += len as u64;
                    self.counters.writes += 1;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    client.blocked_on_write = true;
                    client.trim_output();
                    if client.paused && client.may_resume() {
                        self.want_resume(key);
                    }
                    self.update_interest(key);
                    return;
                }
                Err(_) => {
                    self.close(key);
                    return;
                }
            }
        }
        client.sent = 0;
        client.output.clear();
        if client.output.capacity() <= SPARE_BYTES && self.spare_buffers.len() < SPARE_BUFFERS {
            let buffer = std::mem::take(&mut client.output);
            if buffer.capacity() > 0 {
                self.spare_buffers.push(buffer);
            }
        } else {
            client.output = Vec::new();
        }
        if client.closing && client.pieces.is_empty() {
            self.close(key);
            return;
        }
        let was_blocked = std::mem::take(&mut client.blocked_on_write);
        if client.paused && client.may_resume() {
            self.want_resume(key);
        }
        if was_blocked {
            self.update_interest(key);
        }
    }

    /// Ends a connection whose client sends nothing more, after all that is owed to it.
    pub(super) fn close_after_replies(&mut self, key: ClientKey) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if client.pieces.is_empty() && client.unsent() == 0 {
            self.close(key);
            return;
        }
        client.closing = true;
        self.unsubscribe_all(key);
        self.update_interest(key);
    }

    /// Ends the connection of the client at `place`, to which a reply was given up because it would pass the limit.
    #[cold]
    pub(super) fn end_over_limit(&mut self, place: Place) {
        if place.core != self.number {
            let end: Task = Box::new(move |core: &mut Core| core.end_over_limit(place));
            self.send(place.core, Message::Task(end));
        } else if let Some(client) = self.clients.get_mut(place.client)
            && client.wants_replies()
        {
            client.over_limit = true;
            client.closing = true;
            self.want_flush(place.client);
        }
    }

    /// Ends a connection after what its socket takes now: what was published before it was ended is not lost with it.
    pub fn end_client(&mut self, key: ClientKey) {
        self.flush_client(key);
        self.close(key);
    }

    /// Ends a connection at once.
    pub fn close(&mut self, key: ClientKey) {
        if let Some(client) = self.clients.remove(key) {
            // Closing the socket takes it out of the epoll set.
            self.process.connected.fetch_sub(1, Ordering::Relaxed);
            if let Some(owner) = client.blocked_at {
                self.cancel_waiting_at(owner, Place { core: self.number, client: key }, Ending::Silent);
            }
            if let Some(watched) = client.watched {
                self.unwatch_at(watched.owner, client.id);
            }
            if let Some(tracking) = client.tracking {
                self.forget_tracking(key, *tracking);
            }
            if client.monitor {
                self.process.monitors.fetch_sub(1, Ordering::Relaxed);
            }
            if let Some(subscriptions) = &client.subscriptions {
                self.forget_all(key, subscriptions);
            }
        }
    }
}
