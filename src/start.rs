//! Starting: checks of the machine, the sockets, an executor a core; and the signals that end it.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, PoisonError};

use glommio::{LocalExecutorBuilder, Placement};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::process::Resource;
use rustix::thread::CpuSet;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::configuration::Configuration;
use crate::core::{Core, Listeners};
use crate::data::DataDirectory;
use crate::functions::{Restored, payload};
use crate::options::{Durability, Options};
use crate::process::Process;

/// Connections that may wait to be accepted (`tcp-backlog`).
pub const BACKLOG: i32 = 511;

/// Locked memory that the executor of a core needs, in bytes.
const LOCKED_BYTES_A_CORE: u64 = 512 << 10;

/// Submission queue entries of a core's rings.
const RING_DEPTH: usize = 128;

/// Memory registered with a core's rings, in bytes.
const RING_MEMORY: usize = 64 << 10;

/// Descriptors kept for other things than clients.
const RESERVED_DESCRIPTORS: u64 = 64;

/// The processors this process may run on.
pub fn allowed_cpus() -> Result<Vec<usize>, String> {
    let set = rustix::thread::sched_getaffinity(None)
        .map_err(|error| format!("cannot read which processors may be used: {error}"))?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Runs the server until it is told to end.
pub fn run(options: Options, cpus: &[usize]) -> Result<(), String> {
    ruvio_shard::seed_hashes(rand::random::<u64>());
    check_machine(&options)?;
    let mut configuration = Configuration::new(&options);
    // A client past the descriptors could not even be told that there are too many.
    let room = raise_descriptor_limit(configuration.max_clients as u64);
    configuration.max_clients = configuration.max_clients.min(usize::try_from(room).unwrap_or(usize::MAX)).max(1);
    let listeners = listen(&options)?;
    ruvio_shard::huge_pages::start().map_err(|error| format!("cannot start a thread: {error}"))?;
    let data = match options.durability {
        Durability::Memory => None,
        Durability::EverySecond | Durability::Always => Some(DataDirectory::open(&options.dir, options.shards)?),
    };
    let process =
        Process::new(options, configuration, data, cpus).map_err(|error| format!("cannot make an eventfd: {error}"))?;
    let process = Arc::new(process);
    load_libraries(&process)?;
    end_on_signals(&process)?;
    let options = &process.options;
    let mut executors = Vec::new();
    for (number, listeners) in listeners.into_iter().enumerate() {
        let process = Arc::clone(&process);
        let executor = LocalExecutorBuilder::new(Placement::Fixed(process.processor_of(number)))
            .name(&format!("shard-{number}"))
            .ring_depth(RING_DEPTH)
            .io_memory(RING_MEMORY)
            .spawn(move || async move {
                let core = Core::new(number, process, listeners).map_err(|error| error.to_string())?;
                core.run().await;
                Ok::<(), String>(())
            })
            .map_err(|error| format!("cannot start the executor of shard {number}: {error}"))?;
        executors.push(executor);
    }
    println!(
        "ruvio {} listening on {}, shards {} on ports {}-{}, durability {}, data in {}",
        env!("CARGO_PKG_VERSION"),
        SocketAddr::new(options.bind, options.port),
        options.shards,
        options.shard_port_base,
        process.shard_port(options.shards - 1),
        options.durability.name(),
        options.dir.display()
    );
    if let Some(division) = process.data.as_ref().and_then(|data| data.division()) {
        println!("ruvio: the data are of {} shards and are divided anew", division.old_shards());
    }
    for (number, executor) in executors.into_iter().enumerate() {
        let ended = executor.join().map_err(|error| format!("shard {number} ended: {error}"))?;
        ended.map_err(|error| format!("shard {number} could not start: {error}"))?;
    }
    if let Some(division) = process.data.as_ref().and_then(|data| data.division()) {
        division.abandon();
    }
    match process.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(problem) => Err(problem),
        None => Ok(()),
    }
}

/// Reads the libraries of functions that are kept with the data.
fn load_libraries(process: &Process) -> Result<(), String> {
    let Some(data) = &process.data else { return Ok(()) };
    let Some(bytes) = data.read_libraries()? else { return Ok(()) };
    let limits = process.configuration().script_limits();
    let libraries = payload::read(&bytes, limits)
        .and_then(|libraries| process.libraries.change(|all| all.restore(libraries, Restored::Flush), |_| Ok(())));
    libraries.map_err(|error| {
        let path = data.libraries_path();
        format!(
            "the libraries in {} cannot be loaded: {error}; move the file away to start without them",
            path.display()
        )
    })
}

fn check_machine(options: &Options) -> Result<(), String> {
    let limit = rustix::process::getrlimit(Resource::Memlock).current;
    let needed = LOCKED_BYTES_A_CORE * options.shards as u64;
    if limit.is_some_and(|limit| limit < needed) {
        return Err(format!(
            "{} shards need {} KiB of locked memory and the limit is {} KiB; raise it (ulimit -l, or LimitMEMLOCK= in a \
             service file) or start fewer --shards",
            options.shards,
            needed >> 10,
            limit.unwrap_or(0) >> 10
        ));
    }
    // SAFETY: the call only reads the zeroed parameters, which live as long as it; the kernel checks both arguments.
    let ring = unsafe {
        let mut parameters = [0u8; 120];
        libc::syscall(libc::SYS_io_uring_setup, 2, parameters.as_mut_ptr())
    };
    if ring < 0 {
        let error = std::io::Error::last_os_error();
        return Err(format!(
            "the kernel gives no io_uring ({error}); Ruvio needs Linux 5.8 or later, with kernel.io_uring_disabled=0 and \
             no seccomp filter against it"
        ));
    }
    // SAFETY: the descriptor was returned just now and is used nowhere else.
    unsafe { libc::close(ring as i32) };
    Ok(())
}

/// Lets the process have descriptors for this many clients, as far as it may; returns for how many there are.
pub fn raise_descriptor_limit(clients: u64) -> u64 {
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    let wanted = clients.saturating_add(RESERVED_DESCRIPTORS);
    if limit.current.is_some_and(|current| current < wanted) {
        let earlier = limit.current;
        limit.current = Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
        if rustix::process::setrlimit(Resource::Nofile, limit).is_err() {
            limit.current = earlier;
        }
    }
    limit.current.unwrap_or(u64::MAX).saturating_sub(RESERVED_DESCRIPTORS)
}

fn listen(options: &Options) -> Result<Vec<Listeners>, String> {
    let shared = SocketAddr::new(options.bind, options.port);
    // Another server may share a port that was bound with SO_REUSEPORT, so the port is tried without it first; without
    // listening, because a client that connected meanwhile would be cut off.
    drop(bound_socket(shared, false)?);
    (0..options.shards)
        .map(|shard| {
            let own = SocketAddr::new(options.bind, options.shard_port_base + shard as u16);
            Ok(Listeners { shared: listener(shared, true)?, shard: listener(own, false)? })
        })
        .collect()
}

fn listener(address: SocketAddr, shared: bool) -> Result<OwnedFd, String> {
    let socket = bound_socket(address, shared)?;
    rustix::net::listen(&socket, BACKLOG).map_err(|error| cannot_listen(address, error))?;
    Ok(socket)
}

fn bound_socket(address: SocketAddr, shared: bool) -> Result<OwnedFd, String> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let open = || -> rustix::io::Result<OwnedFd> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        if shared {
            sockopt::set_socket_reuseport(&socket, true)?;
        }
        rustix::net::bind(&socket, &address)?;
        Ok(socket)
    };
    open().map_err(|error| cannot_listen(address, error))
}

fn cannot_listen(address: SocketAddr, error: Errno) -> String {
    if error == Errno::ADDRINUSE {
        format!("{address} is in use by another program; stop it or choose another --port or --shard-port-base")
    } else {
        format!("cannot listen on {address}: {error}")
    }
}

/// Ends the process in order when it is asked to by a signal.
fn end_on_signals(process: &Arc<Process>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot handle signals: {error}");
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(failed)?;
    let process = Arc::clone(process);
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for _ in signals.forever() {
                process.stop();
            }
        })
        .map_err(failed)?;
    Ok(())
}
