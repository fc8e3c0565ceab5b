//! Samples are what the provider would send: signed with the dev secret they verify, and they read back.

use std::collections::HashSet;

use bytes::Bytes;
use hookgate_webhook::{Event, Mode, Provider, Sample};

use crate::{NOW_MS, SENDING, open};

fn receive(provider: Provider, sample: &Sample) -> Event {
    opened(provider, sample).0
}

/// The event of a sample, and the body as it was sent.
fn opened(provider: Provider, sample: &Sample) -> (Event, Bytes) {
    let signed = provider.sign(&provider.dev_keys(), sample, &SENDING);
    let headers: Vec<_> = signed
        .headers
        .iter()
        .map(|(name, value)| (*name, value.as_bytes()))
        .collect();
    let mut events = open(provider, &signed.url, &headers, &signed.body)
        .unwrap()
        .unwrap()
        .events;
    assert_eq!(events.len(), 1);
    (events.remove(0), signed.body)
}

/// The event is the whole body, or its own part of one that carries several.
fn is_part(provider: Provider, event: &Event, sent: &Bytes) -> bool {
    match (provider.knowledge().batches, event.batch) {
        (false, None) => event.body == *sent,
        (true, Some(batch)) => {
            let mut parts = sent.windows(event.body.len());
            (batch.index, batch.count) == (0, 1) && parts.any(|part| part == event.body)
        }
        _ => false,
    }
}

#[test]
fn every_sample_verifies_and_reads_back() {
    for provider in Provider::ALL {
        for event_type in provider.sample_types() {
            let sample = provider.sample(Some(event_type), 42, NOW_MS).unwrap();
            let (event, sent) = opened(provider, &sample);
            assert_eq!(event.id.as_str(), sample.id);
            let has_types = !provider.knowledge().places.event_type.is_empty();
            let read = event.event_type.as_ref().map(|own| own.as_str());
            assert_eq!(read, has_types.then_some(event_type), "{provider:?}");
            assert!(is_part(provider, &event, &sent), "{event:?}");
            assert_eq!(event.dropped, []);
        }
    }
}

#[test]
fn every_sample_is_what_its_content_type_says_and_filled_in() {
    for provider in Provider::ALL {
        for event_type in provider.sample_types() {
            let sample = provider.sample(Some(event_type), 42, NOW_MS).unwrap();
            let text = std::str::from_utf8(&sample.body).unwrap();
            assert!(!text.contains("{{"), "{event_type}");
            let (_, content_type) = sample
                .headers
                .iter()
                .find(|(name, _)| *name == "Content-Type")
                .unwrap();
            match content_type.split(';').next().unwrap() {
                "application/json" => drop(serde_json::from_str::<serde_json::Value>(text).unwrap()),
                "application/x-www-form-urlencoded" => {
                    let pairs = text.split('&').map(|pair| pair.split_once('=').unwrap());
                    assert!(pairs.clone().all(|(name, _)| !name.is_empty()));
                    assert!(text.is_ascii() && !text.contains(' '));
                }
                other => panic!("{other}"),
            }
        }
    }
}

#[test]
fn a_serial_makes_the_ids_and_nothing_else_does() {
    for provider in Provider::ALL {
        let sample = |serial| provider.sample(None, serial, NOW_MS).unwrap();
        let ids: HashSet<_> = (0..1000).map(|serial| sample(serial).id).collect();
        assert_eq!(ids.len(), 1000);
        assert_eq!(sample(7), sample(7));
        assert_ne!(sample(7).id, sample(u128::MAX).id);
        receive(provider, &sample(u128::MAX));
    }
}

#[test]
fn samples_carry_the_providers_own_fields() {
    let read = |provider: Provider| receive(provider, &provider.sample(None, 42, NOW_MS).unwrap());
    let stripe = read(Provider::Stripe);
    assert_eq!(stripe.mode, Mode::Test);
    assert_eq!(stripe.provider_time.unwrap().unix_ms, 1_790_000_010_000);
    let shopify = read(Provider::Shopify);
    assert_eq!(shopify.object_id.unwrap().as_str(), "1000000000000000042");
    assert_eq!(shopify.account.unwrap().as_str(), "hookgate-dev.myshopify.com");
    assert_eq!(shopify.provider_time.unwrap().unix_ms, NOW_MS);
    let lemon = read(Provider::LemonSqueezy);
    assert_eq!(
        (lemon.mode, lemon.account.unwrap().as_str()),
        (Mode::Test, "48211")
    );
    assert_eq!(&*lemon.provider_time.unwrap().text, "2026-09-21T14:13:30.123000Z");
    let mercado_pago = read(Provider::MercadoPago);
    assert_eq!(mercado_pago.object_id.unwrap().as_str(), "1000000042");
    assert_eq!(
        &*mercado_pago.provider_time.unwrap().text,
        "2026-09-21T10:13:30.123-04:00"
    );
    let asaas = read(Provider::Asaas);
    assert_eq!(asaas.id.as_str(), "evt_05b708f961d739ea7eba7e4db318f621&42");
    let time = asaas.provider_time.unwrap();
    assert_eq!(
        (&*time.text, time.unix_ms),
        ("2026-09-21 11:13:30", 1_790_000_010_000)
    );
    for provider in [Provider::Revenuecat, Provider::RevenuecatHmac] {
        let event = read(provider);
        assert_eq!(
            (event.mode, event.provider_time.unwrap().unix_ms),
            (Mode::Test, NOW_MS)
        );
    }
    assert_eq!(
        read(Provider::Github).account.unwrap().as_str(),
        "repository:79929171"
    );
    let hubspot = read(Provider::Hubspot);
    assert_eq!(hubspot.own_id.unwrap().as_str(), "1000000000000000042");
    let line = read(Provider::Line);
    assert_eq!(line.object_id.unwrap().as_str(), "1000000000000000042");
    assert_eq!(line.provider_time.unwrap().unix_ms, NOW_MS);
    assert_eq!(read(Provider::Slack).account.unwrap().as_str(), "T061EG9R6");
    let discord = read(Provider::Discord);
    assert!(discord.id_is_digest);
    assert_eq!(&*discord.provider_time.unwrap().text, "2026-09-21T14:13:30.123");
    assert_eq!(read(Provider::Adyen).mode, Mode::Test);
    assert_eq!(
        read(Provider::Adyen).provider_time.unwrap().unix_ms,
        1_790_000_010_000
    );
    assert_eq!(read(Provider::Linear).provider_time.unwrap().unix_ms, NOW_MS);
    assert_eq!(read(Provider::Paypal).provider_time.unwrap().unix_ms, NOW_MS);
    let twilio = read(Provider::Twilio);
    assert_eq!(
        twilio.object_id.unwrap().as_str(),
        "SM0000000000000000000000000000002a"
    );
    let zoom = read(Provider::Zoom);
    assert!(zoom.id_is_digest);
    assert_eq!(zoom.provider_time.unwrap().unix_ms, NOW_MS);
    assert_eq!(zoom.account.unwrap().as_str(), "AAAAAABBBB");
    let standard = read(Provider::StandardWebhooks);
    assert_eq!(&*standard.provider_time.unwrap().text, "2026-09-21T14:13:30.123Z");
}

#[test]
fn stripe_samples_are_printed_as_stripe_prints() {
    let sample = Provider::Stripe.sample(Some("invoice.paid"), 1, NOW_MS).unwrap();
    assert!(sample.body.starts_with(b"{\n  \"id\": \"evt_"));
}

#[test]
fn an_unknown_type_names_the_known_ones() {
    let unknown = Provider::Shopify
        .sample(Some("orders/eaten"), 1, NOW_MS)
        .unwrap_err();
    assert!(
        unknown
            .to_string()
            .contains("orders/create, orders/paid, refunds/create")
    );
}

#[test]
fn a_clock_out_of_range_still_makes_a_sample() {
    for (provider, now_ms) in Provider::ALL
        .into_iter()
        .flat_map(|provider| [i64::MIN, i64::MAX, -1].map(|now_ms| (provider, now_ms)))
    {
        let sample = provider.sample(None, 1, now_ms).unwrap();
        assert_ne!(sample.body, Bytes::new());
    }
}
