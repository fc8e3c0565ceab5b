//! Wrong URLs stop the start with one sentence that shows no password.

use hookgate_claim::{Epoch, RedisClaims, RedisMode, RedisSettings};

use super::AMPLE;

fn refusal(mode: RedisMode, urls: &[&str]) -> String {
    let urls = urls.iter().map(|&url| url.into()).collect();
    match RedisClaims::new(RedisSettings::new(mode, urls, AMPLE), Epoch::default()) {
        Ok(_) => String::new(),
        Err(bad) => bad.to_string(),
    }
}

#[test]
fn a_url_of_the_accepted_form_needs_no_server_and_no_runtime() {
    let name = "redis.invalid";
    for url in [
        format!("redis://{name}"),
        format!("redis://{name}:6380/3"),
        format!("redis://:pass@{name}"),
        format!("rediss://user:p%2Ca%40ss@{name}:6380/0"),
        "redis://[::1]:6379".to_owned(),
        "unix:///run/redis.sock".to_owned(),
    ] {
        assert_eq!(refusal(RedisMode::Single, &[&url]), "", "{url}");
    }
    let three = [
        "redis://u:p@a.invalid",
        "redis://u:p@b.invalid:1",
        "redis://u:p@c.invalid",
    ];
    assert_eq!(refusal(RedisMode::Cluster, &three), "");
    assert_eq!(refusal(RedisMode::Sentinel, &three), "");
}

#[test]
fn a_wrong_url_is_told_by_its_place_and_the_accepted_form() {
    let wrong = "redis://user:s3cret@";
    for (mode, urls, place) in [
        (RedisMode::Single, vec!["s3cret"], "1 of 1"),
        (RedisMode::Single, vec!["http://user:s3cret@host"], "1 of 1"),
        (RedisMode::Single, vec!["redis://user:s3cret@host/db"], "1 of 1"),
        (
            RedisMode::Single,
            vec!["rediss://user:s3cret@host/#insecure"],
            "1 of 1",
        ),
        (
            RedisMode::Single,
            vec!["redis://a", "redis://:s3cret@b"],
            "2 of 2",
        ),
        (RedisMode::Single, vec![], "1 of 0"),
        (
            RedisMode::Cluster,
            vec!["redis://a", "redis://b", wrong],
            "3 of 3",
        ),
        (
            RedisMode::Cluster,
            vec!["redis://:s3cret@a", "redis://:s3cret2@b"],
            "2 of 2",
        ),
        (RedisMode::Cluster, vec!["redis://a", "rediss://b"], "2 of 2"),
        (RedisMode::Cluster, vec!["redis://:s3cret@a/1"], "1 of 1"),
        (RedisMode::Cluster, vec!["unix:///s3cret"], "1 of 1"),
        (RedisMode::Sentinel, vec!["redis://a", ""], "2 of 2"),
    ] {
        let told = refusal(mode, &urls);
        assert!(
            told.contains(place) && told.contains("redis://[user:password@]host[:port][/db]"),
            "{told}"
        );
        assert!(!told.contains("s3cret"), "{told}");
    }
}
