//! The gateway from outside: the real binary, real Redis, real Postgres, real sockets; HTTP answers, rows,
//! keys, metrics and log lines are what is looked at.
#![allow(
    unreachable_pub,
    reason = "in a test binary `pub` only parts what other files use from what they do not"
)]

mod account;
mod api;
mod bookkeeping;
mod burst;
mod canaries;
mod change_command;
mod claim_life;
mod command_line;
mod config_file;
mod connections;
mod copies;
mod crash;
mod crew;
mod crowd;
mod dead_letters;
mod death_alert;
mod deployment;
mod desk;
mod dev_command;
mod embedded;
mod events_command;
mod failover;
mod full_ledger;
mod gates;
mod gateway;
mod handover;
mod hang_up;
mod hostile_ids;
mod limits;
mod log_lines;
mod metrics;
mod minutes;
mod missing_secrets;
mod odd_json;
mod outage;
mod path;
mod patience;
mod poisonous_rows;
mod pooler;
mod provider;
mod raw;
mod raw_bytes;
mod redis_away;
mod redis_empty;
mod redis_evicting;
mod redis_failover;
mod redis_one_sided;
mod refusals;
mod replay;
mod restored_dump;
mod retry;
mod rival_workers;
mod roles;
mod rolling;
mod send_command;
mod shared_file;
mod shutdown;
mod signatures;
mod slow_senders;
mod store_advice;
mod success;
mod sweep_command;
mod target_outage;
mod target_tables;
mod targets_command;
mod tls_target;
mod verdicts;
mod verify_command;
mod worker_crash;
mod worker_crowd;
mod wrong_settings;
