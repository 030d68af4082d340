//! What the black-box tests share: a server process, a small RESP client, and scripts of commands with their replies.

mod connection;
pub mod dump_file;
mod notation;
mod ports;
pub mod program;
mod script;
mod server;
pub mod stored;
mod value;

pub use connection::{Connection, encode_command};
pub use ports::PortBlock;
pub use script::{check, replies, replies_resp3};
pub use server::{Options, Server, against_reference_server, wait_until};
pub use value::Value;
