//! The Ruvio server.
//!
//! From the outside in: [`options`] reads how to start, [`start`] checks the machine and starts a [`core`] for each
//! shard; a core reads requests ([`wire`]), finds their commands ([`registry`]), and runs them on its shard (the
//! `ruvio-shard` crate), on another core, or itself ([`commands`]).

use std::process::ExitCode;

mod check;
mod commands;
mod configuration;
mod core;
mod data;
mod functions;
mod import;
mod machine;
mod memory;
mod options;
mod process;
mod registry;
mod scripts;
mod start;
mod wire;

#[global_allocator]
static ALLOCATOR: memory::CountingAllocator = memory::CountingAllocator;

fn main() -> ExitCode {
    memory::give_back_soon();
    let result = start::allowed_cpus().and_then(|cpus| match options::read(cpus.len())? {
        options::Asked::Print(text) => {
            print!("{text}");
            Ok(ExitCode::SUCCESS)
        }
        options::Asked::Check { directory, repair } => Ok(ExitCode::from(check::run(&directory, repair) as u8)),
        options::Asked::Import(import) => import::run(&import).map(|()| ExitCode::SUCCESS),
        options::Asked::Run(options) => start::run(*options, &cpus).map(|()| ExitCode::SUCCESS),
    });
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("ruvio: {error}");
            ExitCode::FAILURE
        }
    }
}
