//! `ASKING`, which a node wants before each command for a slot that it is only about to get.

use redis::{Pipeline, Value as Reply};

use crate::redis::answer::Answer;

/// The same commands, each after a word that lets the node serve the next one and no more.
pub(super) fn asking_each(commands: &Pipeline) -> Pipeline {
    let mut asking = redis::pipe();
    for command in commands.cmd_iter() {
        asking.cmd("ASKING").add_command(command.clone());
    }
    asking
}

/// The answers to the commands themselves; where asking was refused, that.
pub(super) fn without_asking(answer: Answer) -> Answer {
    let (mut replies, mut kept, mut resent) = (answer.replies.into_iter(), Vec::new(), answer.resent);
    while let (Some(asked), Some(reply)) = (replies.next(), replies.next()) {
        kept.push(match asked {
            Reply::ServerError(_) => {
                // The slot may have arrived meanwhile: then the command was served although nobody might ask for it.
                resent |= !matches!(reply, Reply::ServerError(_));
                asked
            }
            _ => reply,
        });
    }
    Answer {
        replies: kept,
        resent,
        in_part: answer.in_part,
    }
}
