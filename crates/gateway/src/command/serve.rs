//! `hookgate dev|serve|receive|work|sweep`: the processes that stay.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::sync::Arc;

use hookgate_signature::Tolerance;
use hookgate_webhook::Provider;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{Failure, print};
use crate::app::{App, Outside, Roles};
use crate::cli::ConfigFile;
use crate::config::{self, Config, Weight};
use crate::logging;
use crate::stores::Stores;

/// Runs the roles until SIGTERM or SIGINT.
pub fn serve(file: &ConfigFile, roles: Roles) -> Result<(), Failure> {
    let config = Config::from_process(file.config.as_deref(), false)?;
    run(&config, roles, |_| {})
}

/// Runs everything embedded, and says what to try.
pub fn dev(file: &ConfigFile) -> Result<(), Failure> {
    let config = Config::from_process(file.config.as_deref(), true)?;
    run(&config, Roles::ALL, |app| print(&welcome(&config, app)))
}

fn run(config: &Config, roles: Roles, started: impl FnOnce(&App)) -> Result<(), Failure> {
    logging::start(config.log, config.log_format);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.threads)
        .enable_all()
        .build()
        .map_err(Failure::new)?;
    let finished = runtime.block_on(async {
        for advice in config::advice(config) {
            // Who tries it out has no use for what could be cheaper.
            if !config.dev || advice.weight == Weight::Warning {
                advice.log();
            }
        }
        let shutdown = shutdown().map_err(Failure::new)?;
        let outside = Outside::default();
        hangups(config.dev, &outside.reread, &shutdown).map_err(Failure::new)?;
        let Some(app) = App::build(config, roles, outside, &shutdown).await? else { return Ok(true) };
        let (admin, stores) = (app.admin_address(), Stores::describe(config));
        match app.public_address() {
            Some(public) => tracing::info!(%public, %admin, "listening on {public}, probes and metrics on {admin}; {stores}"),
            None => tracing::info!(%admin, "working, probes and metrics on {admin}; {stores}"),
        }
        started(&app);
        Ok::<_, Failure>(app.run(&shutdown).await)
    })?;
    if finished {
        Ok(())
    } else {
        Err(Failure::new(
            "stopped before everything was finished; the log says why",
        ))
    }
}

/// SIGTERM from an orchestrator, SIGINT from a terminal. Installed before anything starts, so that no early
/// signal is lost.
pub(super) fn shutdown() -> std::io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let shutdown = CancellationToken::new();
    let told = shutdown.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        told.cancel();
    });
    Ok(shutdown)
}

/// SIGHUP, which would end us otherwise: secrets are read again. Only for who tries us out in a terminal it
/// means that the terminal was closed.
pub(super) fn hangups(dev: bool, reread: &Arc<Notify>, shutdown: &CancellationToken) -> std::io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    let in_a_terminal = dev && std::io::stdout().is_terminal();
    let (reread, shutdown) = (Arc::clone(reread), shutdown.clone());
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            if in_a_terminal {
                shutdown.cancel();
            }
            reread.notify_one();
        }
    });
    Ok(())
}

/// What a newcomer needs: addresses, secrets, and lines to paste into a second terminal.
fn welcome(config: &Config, app: &App) -> String {
    let base = format!(
        "http://{}",
        app.public_address().expect("dev has the public listener")
    );
    let admin = format!("http://{}", app.admin_address());
    let mut text =
        "\nhookgate dev is listening. Dev secrets are public: never use them elsewhere.\n\n".to_owned();
    for source in &config.sources {
        let published = source.provider.knowledge().dev_secrets;
        let ours = |secret: &SecretString| published.contains(&secret.expose_secret());
        // A private key would fill the screen; `hookgate send` knows it.
        let short: Vec<_> = published
            .iter()
            .copied()
            .filter(|secret| secret.len() <= 400)
            .collect();
        let secret = match source.secrets.iter().all(ours) {
            true => short.join(","),
            false => "(yours)".to_owned(),
        };
        let _ = writeln!(
            text,
            "  {:<56} secret {secret}",
            format!("{base}/webhooks/{}", source.name)
        );
    }
    let program = std::env::args().next().unwrap_or_else(|| "hookgate".to_owned());
    text += &format!(
        "\nTry in another terminal (a signed event twice, the same by curl, an unsigned one, the counters):\n\n\
         \x20 {program} send stripe --twice --url {base}\n"
    );
    text.extend(signed_curl(config, &base));
    text + &format!(
        "\x20 curl -i -X POST {base}/webhooks/stripe -d '{{}}'\n\
         \x20 curl -s {admin}/metrics | grep hookgate_deliveries_total\n\
         \x20 curl -s {admin}/readyz\n\n"
    )
}

/// A signed delivery as one curl line. GitHub signs no timestamp, so the line stays good: send it twice.
fn signed_curl(config: &Config, base: &str) -> Option<String> {
    const PING: &str = r#"{"zen":"Keep it logically awesome.","hook_id":1}"#;
    let source = config
        .sources
        .iter()
        .find(|source| source.provider == Provider::Github)?;
    let keys = source.provider.keys(&source.secrets[..1], Tolerance::Off).ok()?;
    let (header, signature) = keys.sign("", 0, PING.as_bytes()).pop()?;
    Some(format!(
        "\x20 curl -i -X POST {base}/webhooks/{} -H 'X-GitHub-Event: ping' -H 'X-GitHub-Delivery: my-first-event' \\\n\
         \x20   -H '{header}: {signature}' -d '{PING}'\n",
        source.name
    ))
}
