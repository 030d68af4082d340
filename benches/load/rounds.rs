//! A load on several servers in turns, so that what disturbs the machine disturbs all of them.

use crate::process::cpu_time;
use crate::redis_benchmark::{Load, Speed};
use crate::server::Server;
use crate::table::median;
use crate::{Effort, Result};

/// What one run of the load cost one server.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The server's CPU time a request, in µs.
    pub cpu_us: f64,
    /// How fast it went.
    pub speed: Speed,
}

/// The samples of each server, round by round.
pub struct Rounds {
    samples: Vec<Vec<Sample>>,
}

impl Rounds {
    /// Runs one server's load after the other's, `effort.rounds` times behind a round that warms up.
    pub fn run(servers: &[(&Server, Load)], effort: Effort) -> Result<Rounds> {
        let mut samples = vec![Vec::new(); servers.len()];
        for round in 0..=effort.rounds {
            for ((server, load), samples) in servers.iter().zip(&mut samples) {
                let before = cpu_time(server.process_id())?;
                let speed = load.run(server.port())?;
                let spent = cpu_time(server.process_id())? - before;
                if round > 0 {
                    samples.push(Sample { cpu_us: spent.as_secs_f64() * 1e6 / load.requests as f64, speed });
                }
            }
        }
        Ok(Rounds { samples })
    }

    /// The median of a figure of one server; `None` where that server is not there.
    pub fn median(&self, server: usize, figure: fn(&Sample) -> f64) -> Option<f64> {
        median(self.samples.get(server)?.iter().map(figure).collect())
    }

    /// The median over rounds of server 1's figure divided by server 0's.
    pub fn ratio(&self, figure: fn(&Sample) -> f64) -> Option<f64> {
        let [first, second] = self.samples.as_slice() else { return None };
        median(first.iter().zip(second).map(|(first, second)| figure(second) / figure(first)).collect())
            .filter(|ratio| ratio.is_finite())
    }
}
