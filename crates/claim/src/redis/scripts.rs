//! The steps after the first, each one script on one key, so that comparing and changing cannot be parted.
//!
//! Sent by hash; a server that does not know it (restarted, failed over) gets the text once.

use std::sync::LazyLock;

use redis::{Pipeline, Script, ToRedisArgs};

/// Replaces what was seen, if it is still there and, by the server's own clock and at this moment, has no
/// more life left than an expired claim has: a claim renewed since it was seen stays. A key that is gone is
/// free. Answers 1 (was free), 2 (was replaced), or what stands there instead and its life in milliseconds.
///
/// Arguments: value seen, new value, life in seconds, most life left in milliseconds.
pub(super) static REPLACE: LazyLock<Step> = LazyLock::new(|| {
    Step::new(
        "local held = redis.call('GET', KEYS[1])
         local left = redis.call('PTTL', KEYS[1])
         if held and (held ~= ARGV[1] or left > tonumber(ARGV[4])) then
           return {held, left}
         end
         redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
         if held then return 2 else return 1 end",
    )
});

/// Gives our claim its full life again. Arguments: our value, life in seconds.
pub(super) static RENEW: LazyLock<Step> = LazyLock::new(|| {
    Step::new(
        "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
         return redis.call('EXPIRE', KEYS[1], ARGV[2])",
    )
});

/// Turns our claim into a done mark. Arguments: our value, the mark, life in seconds.
pub(super) static FINISH: LazyLock<Step> = LazyLock::new(|| {
    Step::new(
        "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
         redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
         return 1",
    )
});

/// Deletes our claim. Argument: our value.
pub(super) static RELEASE: LazyLock<Step> = LazyLock::new(|| {
    Step::new(
        "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
         return redis.call('DEL', KEYS[1])",
    )
});

/// A script and its hash.
pub(super) struct Step {
    text: &'static str,
    script: Script,
}

impl Step {
    fn new(text: &'static str) -> Self {
        Self {
            text,
            script: Script::new(text),
        }
    }

    /// The script on `key`, still without arguments.
    pub(super) fn on(&'static self, key: &str) -> Call {
        Call {
            step: self,
            key: key.to_owned(),
            arguments: Vec::new(),
        }
        .arg(key)
    }
}

/// A script with its key and arguments.
pub(super) struct Call {
    step: &'static Step,
    key: String,
    arguments: Vec<Vec<u8>>,
}

impl Call {
    /// The one key it works on.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn arg(mut self, argument: impl ToRedisArgs) -> Self {
        argument.write_redis_args(&mut self.arguments);
        self
    }

    pub(super) fn by_hash(&self) -> Pipeline {
        self.command("EVALSHA", self.step.script.get_hash())
    }

    pub(super) fn by_text(&self) -> Pipeline {
        self.command("EVAL", self.step.text)
    }

    fn command(&self, name: &str, script: &str) -> Pipeline {
        const KEYS: u8 = 1;
        let mut pipeline = redis::pipe();
        pipeline.cmd(name).arg(script).arg(KEYS).arg(&self.arguments);
        pipeline
    }
}
