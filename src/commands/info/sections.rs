//! The text of each section of `INFO`. Fields have Redis's names where they say the same.

use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use ruvio_shard::slot::shard_slots;

use super::Section;
use super::part::Part;
use crate::commands::REDIS_VERSION;
use crate::core::Core;
use crate::core::subscriber_counts::Topic;
use crate::registry::registry;
use crate::{machine, memory};

/// Lines of `field:value`.
struct Lines(String);

impl Lines {
    fn add(&mut self, field: &str, value: impl std::fmt::Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{field}:{value}\r\n");
    }

    fn add_bytes(&mut self, field: &str, bytes: u64) {
        self.add(field, bytes);
        self.add(&format!("{field}_human"), human(bytes));
    }

    fn add_all<V: std::fmt::Display>(&mut self, fields: &[(&str, V)]) {
        for (field, value) in fields {
            self.add(field, value);
        }
    }
}

/// A number of bytes in the greatest unit that fits.
pub fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["K", "M", "G", "T", "P"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.2}{}", UNITS[unit])
}

/// Writes the lines of a section.
type WriteFields = fn(&mut Lines, &Core, &Part, &[Part]);

/// The text of a section.
pub fn write(section: Section, core: &Core, all: &Part, parts: &[Part]) -> String {
    let (title, write): (&str, WriteFields) = match section {
        Section::Server => ("Server", server),
        Section::Clients => ("Clients", clients),
        Section::Memory => ("Memory", memory_use),
        Section::Persistence => ("Persistence", persistence),
        Section::Stats => ("Stats", stats),
        Section::Replication => ("Replication", replication),
        Section::Cpu => ("CPU", cpu),
        // There are none.
        Section::Modules => ("Modules", |_, _, _, _| {}),
        Section::CommandStats => ("Commandstats", command_stats),
        Section::ErrorStats => ("Errorstats", error_stats),
        Section::LatencyStats => ("Latencystats", latency_stats),
        Section::Cluster => ("Cluster", |lines, core, _, _| {
            lines.add("cluster_enabled", u8::from(!core.process.options.cross_slot));
        }),
        Section::Shards => ("Shards", shards),
        Section::Keyspace => ("Keyspace", keyspace),
    };
    let mut lines = Lines(format!("# {title}\r\n"));
    write(&mut lines, core, all, parts);
    lines.0
}

fn server(lines: &mut Lines, core: &Core, _: &Part, _: &[Part]) {
    let process = &core.process;
    let options = &process.options;
    let path = |path: Option<std::path::PathBuf>| path.map(|path| path.display().to_string()).unwrap_or_default();
    let uptime_s = process.started.elapsed().as_secs();
    lines.add("redis_version", REDIS_VERSION);
    lines.add("ruvio_version", env!("CARGO_PKG_VERSION"));
    // As of a Redis that was not built from its repository: it has no commit to name.
    lines.add("redis_git_sha1", "00000000");
    lines.add("redis_git_dirty", 0);
    lines.add("redis_mode", if options.cross_slot { "standalone" } else { "cluster" });
    lines.add("os", machine::kernel());
    lines.add("arch_bits", usize::BITS);
    lines.add("multiplexing_api", "epoll");
    lines.add("process_id", std::process::id());
    lines.add("run_id", &process.run_id);
    lines.add("tcp_port", options.port);
    lines.add("shards", options.shards);
    lines.add("shard_port_base", options.shard_port_base);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    lines.add("server_time_usec", now.as_micros());
    lines.add("uptime_in_seconds", uptime_s);
    lines.add("uptime_in_days", uptime_s / 86_400);
    lines.add("hz", crate::core::TICKS_A_SECOND);
    lines.add("configured_hz", crate::core::TICKS_A_SECOND);
    lines.add("executable", path(std::env::current_exe().ok()));
    lines.add("config_file", path(options.config.as_ref().and_then(|file| std::path::absolute(file).ok())));
}

fn clients(lines: &mut Lines, core: &Core, all: &Part, _: &[Part]) {
    lines.add("connected_clients", all.clients);
    lines.add("maxclients", core.configuration.max_clients);
    lines.add("client_recent_max_input_buffer", all.longest_input);
    lines.add("client_recent_max_output_buffer", all.longest_output);
    lines.add("blocked_clients", all.blocked);
    // Shards are threads of one process and have no links.
    lines.add_all(&[
        ("cluster_connections", 0),
        ("tracking_clients", core.process.tracking_clients.load(Ordering::Relaxed)),
        ("pubsub_clients", all.subscribers),
        ("clients_in_timeout_table", all.blocked_with_timeout),
        ("total_blocking_keys", all.blocking_keys),
        ("total_blocking_keys_on_nokey", 0),
    ]);
}

fn memory_use(lines: &mut Lines, core: &Core, all: &Part, _: &[Part]) {
    let used = memory::used();
    let peak = core.process.peak_memory.fetch_max(used, Ordering::Relaxed).max(used);
    let resident = machine::resident_bytes();
    let settings = &core.configuration.settings;
    lines.add_bytes("used_memory", used);
    lines.add_bytes("used_memory_rss", resident);
    lines.add_bytes("used_memory_peak", peak);
    lines.add("used_memory_peak_perc", format_args!("{:.2}%", used as f64 * 100.0 / peak.max(1) as f64));
    lines.add_bytes("total_system_memory", machine::total_memory_bytes());
    let (scripts, functions) = all.interpreter_bytes;
    let libraries = core.process.libraries.current();
    lines.add_bytes("used_memory_lua", scripts as u64);
    lines.add("used_memory_vm_eval", scripts);
    lines.add("used_memory_scripts_eval", core.process.scripts.bytes());
    lines.add("number_of_cached_scripts", core.process.scripts.len());
    lines.add("number_of_functions", libraries.functions());
    lines.add("number_of_libraries", libraries.len());
    lines.add("used_memory_vm_functions", functions);
    lines.add_bytes("used_memory_vm_total", (scripts + functions) as u64);
    lines.add("used_memory_functions", libraries.bytes());
    lines.add_bytes("used_memory_scripts", (core.process.scripts.bytes() + libraries.bytes()) as u64);
    lines.add_bytes("maxmemory", settings.maxmemory);
    lines.add("maxmemory_policy", settings.maxmemory_policy.name());
    lines.add("mem_fragmentation_ratio", format_args!("{:.2}", resident as f64 / used.max(1) as f64));
    lines.add("mem_fragmentation_bytes", resident as i64 - used as i64);
    lines.add("mem_clients_normal", all.client_bytes);
    // All that is used counts.
    lines.add("mem_not_counted_for_evict", memory::not_limited());
    lines.add("mem_allocator", memory::ALLOCATOR_NAME);
    lines.add("lazyfree_pending_objects", all.to_free);
    lines.add("lazyfreed_objects", all.keys.lazy_freed);
}

fn persistence(lines: &mut Lines, core: &Core, all: &Part, _: &[Part]) {
    lines.add("durability", core.configuration.durability.name());
    lines.add("rdb_changes_since_last_save", all.keys.dirty);
    let loading = core.process.loading.load(Ordering::Relaxed) > 0;
    let data = &all.data;
    lines.add("loading", u8::from(loading));
    lines.add("rdb_bgsave_in_progress", u8::from(data.makes_checkpoint));
    lines.add("aof_rewrite_in_progress", u8::from(data.makes_checkpoint));
    // There are no replicas, and a checkpoint begins at once.
    lines.add_all(&[("async_loading", 0), ("rdb_saves", 0), ("aof_rewrite_scheduled", 0)]);
    lines.add("aof_enabled", u8::from(core.process.data.is_some()));
    if core.process.data.is_some() {
        lines.add("rdb_last_save_time", core.process.last_save_s.load(Ordering::Relaxed));
        lines.add("rdb_last_bgsave_status", if data.checkpoint_failed { "err" } else { "ok" });
        lines.add("aof_base_size", data.checkpoint_bytes);
        lines.add("log_bytes_since_checkpoint", data.since_checkpoint);
        lines.add("aof_last_write_status", if data.trouble.is_none() { "ok" } else { "err" });
        lines.add("aof_last_bgrewrite_status", if data.checkpoint_failed { "err" } else { "ok" });
        lines.add("aof_delayed_fsync", data.delayed_syncs);
        lines.add("aof_current_size", data.log_bytes);
        lines.add("aof_pending_bytes", data.log_bytes - data.acknowledged_bytes);
        lines.add("log_trouble", data.trouble.as_deref().unwrap_or("none"));
    }
    if loading {
        lines.add("loading_total_bytes", data.to_load);
        lines.add("loading_loaded_bytes", data.loaded);
        let share = if data.to_load == 0 { 100.0 } else { data.loaded as f64 * 100.0 / data.to_load as f64 };
        lines.add("loading_loaded_perc", format_args!("{share:.2}"));
    }
}

fn stats(lines: &mut Lines, core: &Core, all: &Part, parts: &[Part]) {
    let counters = &all.counters;
    let rates: Vec<(f64, f64, f64)> = parts.iter().map(|part| part.counters.rates.per_second()).collect();
    let commands: f64 = rates.iter().map(|rates| rates.0).sum();
    let input: f64 = rates.iter().map(|rates| rates.1).sum();
    let output: f64 = rates.iter().map(|rates| rates.2).sum();
    lines.add("total_connections_received", counters.connections);
    lines.add("total_commands_processed", counters.commands);
    lines.add("instantaneous_ops_per_sec", commands.round() as u64);
    lines.add("total_net_input_bytes", counters.bytes_in);
    lines.add("total_net_output_bytes", counters.bytes_out);
    lines.add("instantaneous_input_kbps", format_args!("{:.2}", input / 1024.0));
    lines.add("instantaneous_output_kbps", format_args!("{:.2}", output / 1024.0));
    lines.add_all(&[
        ("rejected_connections", counters.rejected_connections),
        ("forwarded_commands", counters.forwarded),
        ("moved_replies", counters.moved),
        ("expired_subkeys", all.keys.expired_fields),
        ("expired_keys", all.keys.expired),
        ("expired_time_cap_reached_count", counters.expire_time_cap_reached),
        ("evicted_keys", all.keys.evicted),
        ("evicted_scripts", core.process.scripts.evicted()),
        ("keyspace_hits", all.keys.hits),
        ("keyspace_misses", all.keys.misses),
        ("total_error_replies", counters.error_replies),
        ("total_reads_processed", counters.reads),
        ("total_writes_processed", counters.writes),
        ("client_query_buffer_limit_disconnections", counters.query_limit_disconnections),
        ("client_output_buffer_limit_disconnections", counters.output_limit_disconnections),
        // Nothing forks.
        ("total_forks", 0),
        // MIGRATE opens a connection for each call.
        ("migrate_cached_sockets", 0),
    ]);
    subscriptions(lines, core);
    lines.add_all(&[
        ("tracking_total_keys", all.tracked_keys),
        ("tracking_total_items", all.tracked_items),
        // Every core knows them all.
        ("tracking_total_prefixes", core.tracked.prefixes.len()),
    ]);
    let (mut turns, mut busy_ns) = (0.0, 0.0);
    for part in parts {
        let (turns_per_s, busy_ns_per_s) = part.counters.rates.turns_per_second();
        turns += turns_per_s;
        busy_ns += busy_ns_per_s;
    }
    lines.add_all(&[
        ("eventloop_cycles", counters.turns),
        ("eventloop_duration_sum", all.busy_ns / 1000),
        ("eventloop_duration_cmd_sum", all.command_ns / 1000),
        ("instantaneous_eventloop_cycles_per_sec", turns.round() as u64),
        ("instantaneous_eventloop_duration_usec", if turns > 0.0 { (busy_ns / 1000.0 / turns) as u64 } else { 0 }),
    ]);
}

fn subscriptions(lines: &mut Lines, core: &Core) {
    for (field, topic) in [
        ("pubsub_channels", Topic::Channel),
        ("pubsub_patterns", Topic::Pattern),
        ("pubsubshard_channels", Topic::ShardChannel),
    ] {
        lines.add(field, core.process.subscriber_counts.names(topic));
    }
}

fn replication(lines: &mut Lines, core: &Core, _: &Part, _: &[Part]) {
    lines.add("role", "master");
    lines.add("connected_slaves", 0);
    lines.add("master_failover_state", "no-failover");
    // The data begin and end with the run, so its identifier names their history.
    lines.add("master_replid", &core.process.run_id);
    lines.add("master_replid2", "0".repeat(40));
    lines.add("master_repl_offset", 0);
    lines.add("second_repl_offset", -1);
    lines.add("repl_backlog_active", 0);
}

fn cpu(lines: &mut Lines, _: &Core, _: &Part, _: &[Part]) {
    let time = machine::cpu_time();
    for (field, seconds) in [
        ("used_cpu_sys", time.system_s),
        ("used_cpu_user", time.user_s),
        ("used_cpu_sys_children", time.children_system_s),
        ("used_cpu_user_children", time.children_user_s),
    ] {
        lines.add(field, format_args!("{seconds:.6}"));
    }
}

fn command_stats(lines: &mut Lines, _: &Core, all: &Part, _: &[Part]) {
    for (command, stats) in registry().all().iter().zip(&all.commands) {
        if stats.calls == 0 && stats.rejected == 0 && stats.failed == 0 {
            continue;
        }
        let total_us = stats.total_ns / 1000;
        let each_us = if stats.calls == 0 { 0.0 } else { stats.total_ns as f64 / 1000.0 / stats.calls as f64 };
        lines.add(
            &format!("cmdstat_{}", command.spec.name),
            format_args!(
                "calls={},usec={total_us},usec_per_call={each_us:.2},rejected_calls={},failed_calls={}",
                stats.calls, stats.rejected, stats.failed
            ),
        );
    }
}

fn error_stats(lines: &mut Lines, _: &Core, all: &Part, _: &[Part]) {
    for (code, count) in &all.counters.errors {
        lines.add(&format!("errorstat_{code}"), format_args!("count={count}"));
    }
}

fn latency_stats(lines: &mut Lines, core: &Core, all: &Part, _: &[Part]) {
    for (command, stats) in registry().all().iter().zip(&all.commands) {
        let Some(latencies) = &stats.latencies else { continue };
        let percentiles: Vec<String> = core
            .configuration
            .latency_tracking_percentiles
            .iter()
            .map(|&percentile| {
                let duration_us = latencies.value_at_percentile(percentile) as f64 / 1000.0;
                format!("p{percentile}={duration_us:.3}")
            })
            .collect();
        lines.add(&format!("latency_percentiles_usec_{}", command.spec.name), percentiles.join(","));
    }
}

fn shards(lines: &mut Lines, core: &Core, _: &Part, parts: &[Part]) {
    let process = &core.process;
    for (shard, part) in parts.iter().enumerate() {
        let slots = shard_slots(shard, process.options.shards);
        lines.add(
            &format!("shard{shard}"),
            format_args!(
                "port={},slots={}-{},keys={},keyspace_bytes={},clients={},commands={},shard_commands={},forwarded={},moved={}",
                process.shard_port(shard),
                slots.start(),
                slots.end(),
                part.key_count(),
                memory::keyspace_of(shard),
                part.clients,
                part.counters.commands,
                part.counters.shard_commands,
                part.counters.forwarded,
                part.counters.moved,
            ),
        );
    }
}

fn keyspace(lines: &mut Lines, _: &Core, all: &Part, _: &[Part]) {
    for (number, database) in all.databases.iter().enumerate() {
        if database.keys > 0 {
            lines.add(
                &format!("db{number}"),
                format_args!(
                    "keys={},expires={},avg_ttl={},subexpiry={}",
                    database.keys,
                    database.with_deadline,
                    database.average_ttl_ms(),
                    database.with_field_deadlines
                ),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_are_shown_in_the_greatest_unit_that_fits() {
        for (bytes, text) in [(0, "0B"), (1023, "1023B"), (1024, "1.00K"), (1_572_864, "1.50M"), (3 << 40, "3.00T")] {
            assert_eq!(super::human(bytes), text);
        }
    }
}
