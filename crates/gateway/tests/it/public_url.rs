//! The URL that a source is registered under, as a setting. What is made of it for a request is tested where it is
//! made.

use crate::command_line::run_with_file;
use crate::provider::SECRET;

fn file(line: &str) -> String {
    format!("[sources.stripe]\nsecrets = ['{SECRET}']\n{line}\n")
}

#[tokio::test]
async fn a_url_of_a_source_is_whole_or_stops_the_start() {
    for wrong in [
        "'hooks.example.com'",
        "'ftp://hooks.example.com/x'",
        "'https://hooks.example.com/#part'",
        "'https://hooks.example.com/a b'",
        "' https://hooks.example.com/'",
        "''",
        "7",
    ] {
        let ran = run_with_file(&["serve"], &file(&format!("public_url = {wrong}")), &[]).await;
        assert_eq!(ran.code, Some(64), "{wrong}: {ran:#?}");
        assert!(ran.sentence().contains("public_url"), "{wrong}: {ran:#?}");
    }
    for right in [
        "https://hooks.example.com/in?shop=7",
        "http://127.0.0.1:8080/webhooks/stripe",
    ] {
        let line = format!("public_url = '{right}'");
        let ran = run_with_file(&["config", "check", "--offline"], &file(&line), &[]).await;
        assert_eq!(ran.code, Some(0), "{right}: {ran:#?}");
    }
}
