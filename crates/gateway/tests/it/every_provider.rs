//! All providers at once: a gateway with a source for each, and deliveries signed as each of them signs, also where it
//! signs the URL that is registered with it.

use bytes::Bytes;
use hookgate_signature::{Delivery, Headers};
use hookgate_webhook::{Provider, Sending};
use tempfile::TempDir;

use crate::embedded;
use crate::gateway::{Answer, Replica, client};
use crate::provider::{Signed, now};

/// What all sources are registered under.
const PUBLIC_URL: &str = "https://hooks.example.com";

/// A replica on the embedded stores with a source for each of these providers, and its directory.
pub async fn serve(providers: &[Provider], settings: &[(&str, &str)]) -> (Replica, TempDir) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let database = embedded::url(&directory.path().join("hookgate.db"));
    let secrets: Vec<_> = providers
        .iter()
        .map(|provider| {
            let name = format!("{}_WEBHOOK_SECRET", provider.name().to_uppercase());
            (name, provider.knowledge().dev_secrets.join(","))
        })
        .collect();
    let mut all = vec![
        ("DATABASE_URL", database.as_str()),
        ("HOOKGATE_PUBLIC_URL", PUBLIC_URL),
    ];
    all.extend(
        secrets
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    );
    all.extend(settings);
    (Replica::serve(&all).await, directory)
}

/// The URL of the provider's source, as it is registered.
fn registered(provider: Provider) -> String {
    format!("{PUBLIC_URL}/webhooks/{}", provider.name())
}

/// A delivery, and the URL to which its provider sends it.
#[derive(Clone)]
pub struct Addressed {
    signed: Signed,
    url: String,
}

/// A realistic delivery of this type, new with every call.
pub fn delivery(provider: Provider, event_type: &str) -> Addressed {
    let sample = provider
        .sample(Some(event_type), rand::random(), now() * 1000)
        .expect("there is a sample");
    let sending = Sending {
        url: &registered(provider),
        now: now(),
    };
    let signed = provider.sign(&provider.dev_keys(), &sample, &sending);
    let headers = signed.headers.into_iter();
    Addressed {
        url: signed.url,
        signed: Signed {
            source: provider.name().to_owned(),
            event_id: sample.id,
            headers: headers.map(|(name, value)| (name.to_owned(), value)).collect(),
            body: signed.body.to_vec(),
        },
    }
}

impl Addressed {
    /// Sends it: to the replica instead of its public URL, as a balancer would.
    pub async fn send(&self, replica: &Replica) -> Answer {
        let path = self.url.strip_prefix(PUBLIC_URL).expect("it goes to us");
        let request = client().post(format!("http://{}{path}", replica.public()));
        let request = self
            .signed
            .headers
            .iter()
            .fold(request, |request, (name, value)| request.header(name, value));
        let answer = request.body(self.signed.body.clone()).send().await;
        Answer::of(answer.expect("the gateway answers")).await
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.signed.headers.iter();
        let found = headers.find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The same with another value of a header; with none, without it.
    pub fn with(&self, name: &str, value: Option<&str>) -> Self {
        let mut other = self.clone();
        other
            .signed
            .headers
            .retain(|(own, _)| !own.eq_ignore_ascii_case(name));
        let header = value.map(|value| (name.to_owned(), value.to_owned()));
        other.signed.headers.extend(header);
        other
    }

    /// Whether it is no event but a handshake.
    pub fn is_handshake(&self, provider: Provider) -> bool {
        let headers = self.signed.headers.iter();
        let headers: Headers<'_> = headers
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect();
        let delivery = Delivery {
            method: "POST",
            url: Some(&self.url),
            headers,
            body: Bytes::copy_from_slice(&self.signed.body),
        };
        let verified = provider.verify(&provider.dev_keys(), delivery, now());
        let reading = provider.read(&verified.expect("it is signed"));
        reading.expect("it can be read").handshake.is_some()
    }
}
