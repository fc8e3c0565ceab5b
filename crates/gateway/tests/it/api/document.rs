//! The OpenAPI document against reality: every operation it names is called, and what the gateway really
//! answers is what the document says. What it does not name does not exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};

use super::scene::Scene;
use super::{Api, sent};

/// The document, with what is asked of it.
struct Document(Value);

/// One operation of it.
struct Operation<'a> {
    method: Method,
    path: &'a str,
    said: &'a Value,
}

impl Document {
    fn operations(&self) -> Vec<Operation<'_>> {
        let paths = self.0["paths"].as_object().expect("the document has paths");
        let of = |(path, item): (&'_ String, &'_ Value)| -> Vec<(Method, String)> {
            let item = item.as_object().expect("a path has operations");
            let methods = item.keys().filter(|key| *key != "parameters");
            methods
                .map(|name| (name.to_uppercase().parse().expect("a method"), path.clone()))
                .collect()
        };
        paths
            .iter()
            .flat_map(of)
            .map(|(method, path)| {
                let (path, item) = paths.get_key_value(&path).expect("it was just there");
                let said = &item[method.as_str().to_lowercase()];
                Operation { method, path, said }
            })
            .collect()
    }

    /// A schema that stands alone.
    fn validator(&self, schema: &Value) -> jsonschema::Validator {
        let mut schema = schema.clone();
        schema["components"] = self.0["components"].clone();
        jsonschema::validator_for(&schema).expect("a schema of the document is one")
    }

    /// Insists that a value is of a schema, and holds nothing that the schema does not name.
    fn check(&self, what: &str, schema: &Value, value: &Value) {
        let validator = self.validator(schema);
        let errors: Vec<_> = validator
            .iter_errors(value)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{what}: {errors:#?}\n{value:#}");
        let unnamed = self.unnamed(schema, value);
        assert!(unnamed.is_empty(), "{what} does not name {unnamed:?}");
    }

    /// All properties that a schema names, with their schemas.
    fn properties<'a>(&'a self, schema: &'a Value) -> BTreeMap<&'a str, &'a Value> {
        let schema = match schema["$ref"].as_str() {
            Some(reference) => self
                .0
                .pointer(reference.trim_start_matches('#'))
                .expect("a reference leads somewhere"),
            None => schema,
        };
        let own = schema["properties"].as_object().into_iter().flatten();
        let mut properties: BTreeMap<_, _> = own.map(|(name, schema)| (name.as_str(), schema)).collect();
        for combined in ["allOf", "oneOf", "anyOf"] {
            let parts = schema[combined].as_array().into_iter().flatten();
            properties.extend(parts.flat_map(|part| self.properties(part)));
        }
        properties
    }

    /// Keys of a value, at any depth, that its schema does not name.
    fn unnamed(&self, schema: &Value, value: &Value) -> Vec<String> {
        match value {
            Value::Array(values) => {
                let items = &schema["items"];
                values
                    .iter()
                    .flat_map(|value| self.unnamed(items, value))
                    .collect()
            }
            Value::Object(values) => {
                let properties = self.properties(schema);
                if properties.is_empty() {
                    return Vec::new();
                }
                let unnamed = |(key, value): (&String, &Value)| match properties.get(key.as_str()) {
                    Some(schema) => self.unnamed(schema, value),
                    None => vec![key.clone()],
                };
                values.iter().flat_map(unnamed).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// What is asked of each operation so that it succeeds: the path with its query, and the body.
async fn questions(scene: &Scene) -> BTreeMap<&'static str, (String, Value)> {
    let (done, dead) = (scene.done().await, scene.dead().await);
    let (redriven, discarded) = (scene.dead().await, scene.dead().await);
    let pulled = scene.pulled().await;
    let reason = json!({"who": "maria", "why": "the handler is mended"});
    let replay = json!({"who": "maria", "why": "the handler is mended", "generation": 0});
    let bulk = json!({"who": "maria", "why": "all of them", "all": true, "dry_run": true});
    let event = |top: &str, id: &str, rest: &str| format!("/v1/{top}/stripe/{id}{rest}");
    let settle = json!({"items": [{"lease": pulled, "outcome": "done"}]});
    BTreeMap::from([
        (
            "GET /v1/events",
            ("/v1/events?state=done,dead&limit=2".to_owned(), Value::Null),
        ),
        (
            "GET /v1/events/{source}/{id}",
            (event("events", &dead, ""), Value::Null),
        ),
        (
            "GET /v1/events/{source}/{id}/body",
            (event("events", &done, "/body"), Value::Null),
        ),
        (
            "POST /v1/events/{source}/{id}/replay",
            (event("events", &done, "/replay"), replay),
        ),
        (
            "POST /v1/events/replay",
            ("/v1/events/replay".to_owned(), bulk.clone()),
        ),
        (
            "GET /v1/dead-letters",
            ("/v1/dead-letters?source=stripe".to_owned(), Value::Null),
        ),
        (
            "POST /v1/dead-letters/redrive",
            ("/v1/dead-letters/redrive".to_owned(), bulk.clone()),
        ),
        (
            "POST /v1/dead-letters/discard",
            ("/v1/dead-letters/discard".to_owned(), bulk),
        ),
        (
            "POST /v1/dead-letters/{source}/{id}/redrive",
            (event("dead-letters", &redriven, "/redrive"), reason.clone()),
        ),
        (
            "POST /v1/dead-letters/{source}/{id}/discard",
            (event("dead-letters", &discarded, "/discard"), reason.clone()),
        ),
        ("GET /v1/targets", ("/v1/targets".to_owned(), Value::Null)),
        (
            "POST /v1/targets/{name}/pause",
            ("/v1/targets/default/pause".to_owned(), reason.clone()),
        ),
        (
            "POST /v1/targets/{name}/resume",
            ("/v1/targets/default/resume".to_owned(), reason),
        ),
        (
            "GET /v1/stats",
            ("/v1/stats?source=stripe".to_owned(), Value::Null),
        ),
        (
            "GET /v1/openapi.json",
            ("/v1/openapi.json".to_owned(), Value::Null),
        ),
        (
            "POST /v1/consume",
            ("/v1/consume".to_owned(), json!({"sources": ["github"]})),
        ),
        (
            "POST /v1/consume/settle",
            ("/v1/consume/settle".to_owned(), settle),
        ),
    ])
}

async fn document(api: &Api) -> Document {
    let answer = api.get("/v1/openapi.json").await;
    assert_eq!(answer.status, 200, "{answer:#?}");
    let document = Document(answer.json);
    assert!(
        document.0["openapi"]
            .as_str()
            .is_some_and(|version| version.starts_with("3.1"))
    );
    document
}

/// Sends one question, and checks the answer against what the document says of it.
async fn ask(api: &Api, document: &Document, operation: &Operation<'_>, path: &str, body: &Value) -> u16 {
    let what = format!("{} {}", operation.method, operation.path);
    let mut request = api.request(operation.method.clone(), path);
    if !body.is_null() {
        request = request.body(body.to_string());
    }
    let answer = sent(request).await;
    let responses = &operation.said["responses"];
    let exact = &responses[answer.status.to_string()];
    let range = &responses[format!("{}XX", answer.status / 100)];
    let said = if exact.is_null() { range } else { exact };
    assert!(said.is_object(), "{what} does not name the answer {answer:#?}");
    let content_type = answer.headers["content-type"].as_str();
    let content = &said["content"][content_type];
    assert!(content.is_object(), "{what} names no {content_type}: {said:#}");
    if content_type.ends_with("json") {
        document.check(&format!("the answer of {what}"), &content["schema"], &answer.json);
    }
    answer.status
}

#[tokio::test]
async fn every_operation_of_the_document_is_there_and_answers_as_it_says() {
    let scene = Scene::set().await;
    let api = &scene.api;
    let document = document(api).await;
    let mut questions = questions(&scene).await;
    for operation in document.operations() {
        let name = format!("{} {}", operation.method, operation.path);
        let (path, body) = questions
            .remove(name.as_str())
            .unwrap_or_else(|| panic!("nobody expected {name} in the document"));
        let wants = &operation.said["requestBody"]["content"]["application/json"]["schema"];
        assert_eq!(wants.is_null(), body.is_null(), "{name}");
        if !body.is_null() {
            document.check(&format!("the question to {name}"), wants, &body);
        }
        assert_eq!(
            ask(&api.with(None), &document, &operation, &path, &body).await,
            401,
            "{name}"
        );
        if operation.method == Method::POST {
            let superfluous = json!({"superfluous": true});
            assert_eq!(
                ask(api, &document, &operation, &path, &superfluous).await,
                400,
                "{name}"
            );
            assert_eq!(
                ask(api, &document, &operation, &path, &json!([])).await,
                400,
                "{name}"
            );
        } else if path.contains('?') {
            let superfluous = format!("{path}&superfluous=1");
            assert_eq!(
                ask(api, &document, &operation, &superfluous, &body).await,
                400,
                "{name}"
            );
        }
        assert_eq!(ask(api, &document, &operation, &path, &body).await, 200, "{name}");
    }
    assert!(questions.is_empty(), "the document lacks {:?}", questions.keys());
}

/// The text of every file beneath a folder.
fn texts(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => texts(&path),
            false => vec![std::fs::read_to_string(&path).expect("a file of text")],
        })
        .collect()
}

/// Methods and paths that the code gives to the HTTP server, read from the code itself.
fn routes_in_the_code() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/admin");
    let mut routes = BTreeSet::new();
    for text in texts(&folder) {
        for method in [
            "get", "post", "put", "delete", "patch", "head", "options", "route",
        ] {
            let attribute = format!("#[{method}(\"");
            let marks = text.match_indices(&attribute);
            let routed =
                marks.map(|(at, mark)| text[at + mark.len()..].split('"').next().unwrap_or_default());
            routes.extend(routed.map(|path| format!("{} {path}", method.to_uppercase())));
        }
        for (at, mark) in text.match_indices(".route(\"") {
            let path = text[at + mark.len()..].split('"').next().unwrap_or_default();
            routes.insert(format!("ROUTE {path}"));
        }
    }
    routes
}

#[tokio::test]
async fn no_route_exists_that_the_document_lacks() {
    let scene = Scene::set().await;
    let document = document(&scene.api).await;
    let named: BTreeSet<_> = document
        .operations()
        .iter()
        .map(|operation| format!("{} {}", operation.method, operation.path))
        .collect();
    let (open, routed): (BTreeSet<_>, BTreeSet<_>) = routes_in_the_code()
        .into_iter()
        .partition(|route| route.starts_with("ROUTE "));
    assert_eq!(routed, named);
    let probes = ["ROUTE /healthz", "ROUTE /metrics", "ROUTE /readyz"].map(str::to_owned);
    assert_eq!(
        open,
        BTreeSet::from(probes),
        "what has no description has no token"
    );
}
