//! The balancer between the provider and the replicas: in turn to whoever is ready, by a probe four times a second
//! and by whether anybody listens. It also asks each process whether it lives, which must never be denied.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::sleep;

use crate::scene::{Place, Running, Scene};

/// Pause between two probes.
const INTERVAL: Duration = Duration::from_millis(250);

/// Longest wait for a probe.
const PROBE_MAX: Duration = Duration::from_millis(250);

/// Chooses replicas.
pub(crate) struct Balancer {
    scene: Arc<Scene>,
    client: reqwest::Client,
    ready: Vec<AtomicBool>,
    turn: AtomicUsize,
    findings: Mutex<Vec<String>>,
}

impl Balancer {
    pub(super) fn new(scene: Arc<Scene>, client: reqwest::Client) -> Self {
        let ready = scene.replicas().iter().map(|_| AtomicBool::new(true)).collect();
        Self {
            scene,
            client,
            ready,
            turn: AtomicUsize::new(0),
            findings: Mutex::default(),
        }
    }

    /// The next replica that is ready, or simply the next if none is.
    pub(crate) fn next(&self) -> usize {
        let count = self.ready.len();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let in_turn = (0..count).map(|step| (turn + step) % count);
        let ready = in_turn
            .clone()
            .find(|&place| self.ready[place].load(Ordering::Relaxed));
        ready.unwrap_or(turn % count)
    }

    /// Nobody listens there.
    pub(crate) fn is_gone(&self, place: usize) {
        self.ready[place].store(false, Ordering::Relaxed);
    }

    /// What probes said that they must not say.
    pub(crate) fn findings(&self) -> Vec<String> {
        self.findings.lock().expect("nobody panics over a list").clone()
    }

    /// Probes for ever.
    pub(super) async fn probe(&self) {
        loop {
            let places = self.scene.places.iter().enumerate();
            let probes = places.map(|(number, place)| self.probe_place(number, place));
            futures_util::future::join_all(probes).await;
            sleep(INTERVAL).await;
        }
    }

    async fn probe_place(&self, number: usize, place: &Place) {
        let running = place.present();
        let (alive, ready) = tokio::join!(self.ask(&running, "healthz"), self.ask(&running, "readyz"));
        if let Some(mark) = self.ready.get(number) {
            mark.store(ready == Some(200), Ordering::Relaxed);
        }
        for (probe, status) in [("healthz", alive), ("readyz", ready)] {
            if let Some(status) = status.filter(|status| *status != 200)
                && running.stays()
            {
                let finding = format!("{} answers {probe} with {status}", running.name);
                self.findings
                    .lock()
                    .expect("nobody panics over a list")
                    .push(finding);
            }
        }
    }

    async fn ask(&self, running: &Running, probe: &str) -> Option<u16> {
        let url = format!("http://{}/{probe}", running.admin);
        let answer = self.client.get(url).timeout(PROBE_MAX).send().await;
        answer.ok().map(|answer| answer.status().as_u16())
    }
}
