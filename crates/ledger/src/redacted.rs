//! How records show themselves in logs and panics: by names and lengths. Headers carry signatures, and bodies
//! are somebody's data.

use std::fmt;

use crate::{Job, NewEvent, OutboxRow, Stored, StoredHeaders};

/// Names of headers and the lengths of their values.
struct Lengths<'a>(&'a StoredHeaders);

impl fmt::Debug for Lengths<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths = self.0.iter().map(|(name, value)| (name, value.len()));
        f.debug_map().entries(lengths).finish()
    }
}

impl fmt::Debug for NewEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewEvent")
            .field("key", &self.key)
            .field("provider", &self.provider)
            .field("account", &self.account)
            .field("mode", &self.mode)
            .field("event_type", &self.event_type)
            .field("object_id", &self.object_id)
            .field("provider_time", &self.provider_time)
            .field("delivery", &self.delivery)
            .field("header_bytes", &Lengths(&self.headers))
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("lease", &self.lease)
            .field("provider", &self.provider)
            .field("event_type", &self.event_type)
            .field("tries", &self.tries)
            .field("header_bytes", &Lengths(&self.headers))
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored")
            .field("event_type", &self.event_type)
            .field("header_bytes", &Lengths(&self.headers))
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

impl fmt::Debug for OutboxRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboxRow")
            .field("target", &self.target)
            .field("kind", &self.kind)
            .field("effect_key", &self.effect_key)
            .field("payload_bytes", &self.payload.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use hookgate_webhook::{EventId, EventKey, Mode, SourceName};

    use super::*;
    use crate::{DeliveryId, Lease};

    #[test]
    fn no_header_and_no_body_shows_itself() {
        let key = EventKey {
            source: SourceName::parse("stripe").expect("a name"),
            id: EventId::parse("evt_1").expect("an id"),
        };
        let headers: StoredHeaders = vec![("x-signature".into(), b"SECRET".to_vec())];
        let body = Bytes::from_static(b"SECRET");
        let event = NewEvent {
            key: key.clone(),
            provider: "stripe",
            account: None,
            mode: Mode::Live,
            event_type: None,
            object_id: None,
            provider_time: None,
            body_sha256: [0; 32],
            headers: headers.clone(),
            body: body.clone(),
            delivery: DeliveryId(1),
            content_keys: Vec::new(),
        };
        let job = Job {
            lease: Lease {
                key,
                owner: DeliveryId(1),
                attempt: 1,
                generation: 0,
            },
            provider: "stripe".into(),
            event_type: None,
            tries: 1,
            headers: headers.clone(),
            body: body.clone(),
        };
        let stored = Stored {
            event_type: None,
            headers,
            body: body.clone(),
        };
        for shown in [format!("{event:?}"), format!("{job:?}"), format!("{stored:?}")] {
            assert!(!shown.contains("SECRET") && !shown.contains("83, 69"), "{shown}");
            assert!(
                shown.contains(r#"{"x-signature": 6}"#) && shown.contains("body_bytes: 6"),
                "{shown}"
            );
        }
        let effect = OutboxRow {
            target: "mailer".into(),
            kind: "receipt".into(),
            effect_key: "a".into(),
            payload: body,
        };
        let shown = format!("{effect:?}");
        assert!(
            !shown.contains("SECRET") && shown.contains("payload_bytes: 6"),
            "{shown}"
        );
    }
}
