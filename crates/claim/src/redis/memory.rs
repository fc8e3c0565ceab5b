//! What the servers say of their memory: a claim that is evicted is as if it had never been.

use redis::{Pipeline, Value as Reply};

use super::answer::{Answer, Failure};
use crate::claims::NodeMemory;

/// The question; `+info` allows it.
pub(super) fn question() -> Pipeline {
    let mut question = redis::pipe();
    question.cmd("INFO").arg("memory");
    question
}

/// From the answers of those that keep claims. A node that tells nothing is left out, unless none tells.
pub(super) fn read(answers: Vec<Result<Answer, Failure>>) -> Result<Vec<NodeMemory>, Failure> {
    let (mut told, mut failed) = (Vec::new(), None);
    for answer in answers {
        match answer {
            Ok(answer) => match answer.replies.first().and_then(node) {
                Some(node) => told.push(node),
                None => failed = Some(answer.refusal()),
            },
            Err(failure) => failed = Some(failure),
        }
    }
    match (told.is_empty(), failed) {
        (true, Some(failure)) => Err(failure),
        _ => Ok(told),
    }
}

fn node(reply: &Reply) -> Option<NodeMemory> {
    let text = match reply {
        Reply::BulkString(text) => str::from_utf8(text).ok()?,
        Reply::VerbatimString { text, .. } => text,
        _ => return None,
    };
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(str::trim)
    };
    Some(NodeMemory {
        policy: field("maxmemory_policy")?.to_owned(),
        bytes_max: field("maxmemory")?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Result<Answer, Failure> {
        Ok(Answer::new(vec![Reply::BulkString(text.as_bytes().to_vec())]))
    }

    #[test]
    fn each_node_is_read_and_one_that_says_nothing_is_left_out() {
        let tight = "# Memory\r\nused_memory:1\r\nmaxmemory:1048576\r\nmaxmemory_policy:allkeys-lru\r\n";
        let expected = NodeMemory {
            policy: "allkeys-lru".into(),
            bytes_max: 1_048_576,
        };
        let silent = || Err(Failure::Unsent("away".into()));
        let told = read(vec![silent(), answer(tight), answer("# Memory")]).unwrap();
        assert_eq!(told, [expected]);
        assert!(read(vec![silent(), silent()]).is_err());
        assert!(read(vec![answer("# Memory")]).is_err());
    }
}
