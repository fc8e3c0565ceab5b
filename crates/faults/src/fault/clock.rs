//! A replica whose clock is wrong. The library of `faketime` stands between it and the system's clock; the monotonic
//! clock, by which processes measure time that passes, is left alone, as it is when a machine's date is wrong.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Strike, replica};

/// Where distributions put it.
const PLACES: [&str; 4] = [
    "/usr/lib/*/faketime/libfaketime.so.1",
    "/usr/lib64/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
    "/usr/local/lib/faketime/libfaketime.so.1",
];

/// The library, where it is installed.
pub(crate) fn library() -> Option<PathBuf> {
    PLACES.iter().flat_map(|place| matches(place)).next()
}

/// The paths of this form; one folder of it may be any.
fn matches(form: &str) -> Vec<PathBuf> {
    let Some((before, after)) = form.split_once("*/") else {
        return Some(PathBuf::from(form))
            .filter(|path| path.is_file())
            .into_iter()
            .collect();
    };
    let folders = fs::read_dir(before).into_iter().flatten().flatten();
    folders
        .map(|folder| folder.path().join(after))
        .filter(|path| path.is_file())
        .collect()
}

/// A day of the clock.
const DAY_SECONDS: i64 = 24 * 3600;

/// One replica is started with its clock off by so many seconds, and later started again with the right one.
pub(super) async fn off(strike: &mut Strike, seconds: i64) {
    let (scene, number) = (Arc::clone(&strike.scene), strike.replica());
    let place = &scene.replicas()[number];
    let Some(library) = library() else {
        scene.miss("no libfaketime is installed");
        return;
    };
    replica::replace(&scene, place, |command| {
        command
            .env("LD_PRELOAD", library)
            .env("FAKETIME", format!("{seconds:+}s"))
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("DONT_FAKE_MONOTONIC", "1");
    })
    .await;
    let other = &scene.replicas()[(number + 1) % scene.replicas().len()];
    let (wrong, right) = (place.present(), other.present());
    let times = tokio::join!(
        strike.provider.time_of_day(&wrong),
        strike.provider.time_of_day(&right)
    );
    let off = times
        .0
        .zip(times.1)
        .map(|(wrong, right)| (wrong - right).rem_euclid(DAY_SECONDS));
    // The two are not asked at the same moment.
    if off.is_none_or(|off| (off - seconds.rem_euclid(DAY_SECONDS)).abs() >= 60) {
        scene.miss(&format!("the clock is off by {off:?} and not by {seconds} s"));
    }
    let time = strike.draw.ms(2_000..3_000);
    strike.last(time).await;
    replica::replace(&scene, place, |_| {}).await;
}
