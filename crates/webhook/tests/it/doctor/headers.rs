//! Headers that are lost, doubled, renamed or spelt in another way.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hookgate_webhook::Provider;
use hookgate_webhook::doctor::{Cause, Kept, Rename, Spelling};

use super::{Saved, broken, of_body, signed};

pub(super) fn cases() -> Vec<(&'static str, Saved, Cause)> {
    let (stripe, github) = (signed(Provider::Stripe), signed(Provider::Github));
    let (shopify, standard) = (signed(Provider::Shopify), signed(Provider::StandardWebhooks));
    let spelt = |header, spelling| Cause::Spelling { header, spelling };
    let respell = |saved: &Saved, change: &dyn Fn(String) -> String| {
        broken(saved.clone(), |saved| {
            let value = change(saved.value(saved.signature()));
            saved.set(saved.signature(), &value);
        })
    };
    let capitals = |value: String| match value.split_once('=') {
        Some((prefix, digest)) => format!("{prefix}={}", digest.to_uppercase()),
        None => value,
    };
    let base64 = |value: String| {
        let digest = value.strip_prefix("sha256=").unwrap().to_owned();
        STANDARD.encode(unhex(&digest))
    };
    let hex = |value: String| {
        let bytes = STANDARD.decode(value).unwrap();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    const GITHUB: &str = "X-Hub-Signature-256";
    const SHOPIFY: &str = "X-Shopify-Hmac-Sha256";
    const STRIPE: &str = "Stripe-Signature";
    vec![
        (
            "a proxy dropped the signature",
            broken(stripe.clone(), |saved| {
                saved.headers.retain(|(name, _)| name != STRIPE)
            }),
            Cause::Missing(STRIPE),
        ),
        (
            "the signature's header is empty",
            broken(github.clone(), |saved| saved.set(GITHUB, "")),
            Cause::Empty(GITHUB),
        ),
        (
            "the signature comes twice",
            broken(github.clone(), |saved| {
                saved.headers.push((GITHUB.to_owned(), b"sha256=00".to_vec()));
            }),
            Cause::Repeated {
                header: GITHUB,
                fits: Some(Kept::First),
            },
        ),
        (
            "a proxy merged two values",
            respell(&github, &|value| format!("{value}, {value}")),
            spelt(GITHUB, Spelling::Merged),
        ),
        (
            "names of headers with underscores",
            broken(standard.clone(), |saved| {
                saved.rename(|name| format!("HTTP_{}", name.replace('-', "_").to_uppercase()));
            }),
            Cause::Renamed {
                header: "webhook-signature",
                rename: Rename::Underscores,
            },
        ),
        (
            "the headers of another brand",
            broken(standard.clone(), |saved| {
                saved.rename(|name| name.replace("webhook-", "svix-"))
            }),
            Cause::Renamed {
                header: "webhook-signature",
                rename: Rename::Brand("svix-signature".to_owned()),
            },
        ),
        (
            "the signature in another header",
            broken(stripe.clone(), |saved| {
                saved.rename(|name| name.replace(STRIPE, "X-Original-Signature"))
            }),
            Cause::Renamed {
                header: STRIPE,
                rename: Rename::Found("X-Original-Signature".to_owned()),
            },
        ),
        (
            "capital digits",
            respell(&github, &capitals),
            spelt(GITHUB, Spelling::Capitals),
        ),
        (
            "the prefix is missing",
            respell(&github, &|value| value.replace("sha256=", "")),
            spelt(GITHUB, Spelling::Prefix),
        ),
        (
            "base64 in place of hexadecimal",
            respell(&github, &base64),
            spelt(GITHUB, Spelling::Base64),
        ),
        (
            "hexadecimal in place of base64",
            respell(&shopify, &hex),
            spelt(SHOPIFY, Spelling::Hex),
        ),
        (
            "base64 without padding",
            respell(&shopify, &|value| value.trim_end_matches('=').to_owned()),
            spelt(SHOPIFY, Spelling::UrlBase64),
        ),
        (
            "spaces in the signature's header",
            respell(&stripe, &|value| value.replace(',', ", ")),
            spelt(STRIPE, Spelling::Decorated),
        ),
        (
            "the signature is cut off",
            respell(&github, &|value| value[..value.len() - 4].to_owned()),
            Cause::Length {
                header: GITHUB,
                is: 60,
                wanted: 64,
            },
        ),
        (
            "only the test signature `v0`",
            respell(&stripe, &|value| {
                let (time, _) = value.split_once(',').unwrap();
                format!("{time},v0={}", "5".repeat(64))
            }),
            Cause::Version {
                header: STRIPE,
                wanted: "v1",
                found: "v0".to_owned(),
            },
        ),
        (
            "only the old signature with SHA-1",
            broken(
                of_body(Provider::Github, "It's a Secret to Everybody", b"Hello, World!"),
                |saved| {
                    saved.headers.retain(|(name, _)| name != GITHUB);
                    saved.set("X-Hub-Signature", "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59");
                },
            ),
            Cause::Hash {
                hash: "SHA-1",
                header: GITHUB,
                fits: true,
            },
        ),
        (
            "a header that is no signature",
            respell(&standard, &|_| "v2,abc".to_owned()),
            Cause::Malformed {
                header: "webhook-signature",
                problem: "it holds no `v1,` with the base64 of 32 bytes and no `v1a,` with the base64 of 64 bytes",
            },
        ),
    ]
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
