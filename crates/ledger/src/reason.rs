//! Who asks for a change, and why. Both are written down for those who ask later, so they have to say something,
//! and to fit on the line where they are shown.

/// Who asks, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Who, e.g. `cli:maria`.
    pub actor: String,
    /// Why, in their words.
    pub why: String,
}

/// What is said is nothing, too long, or more than one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("1 to {characters_max} characters on one line")]
pub struct BadReason {
    /// `who` or `why`.
    pub field: &'static str,
    /// Characters at most.
    pub characters_max: usize,
}

impl Reason {
    /// Longest name of who asks, in characters.
    pub const WHO_MAX: usize = 100;

    /// Longest reason, in characters.
    pub const WHY_MAX: usize = 500;

    /// What `who` says through this door, such as `api` or `cli`.
    ///
    /// # Errors
    /// [`BadReason`], whose words say what would be accepted.
    pub fn read(door: &str, who: &str, why: &str) -> Result<Self, BadReason> {
        Ok(Self {
            actor: format!("{door}:{}", Self::who(who)?),
            why: Self::why(why)?.to_owned(),
        })
    }

    /// Who asks, without spaces around it.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn who(text: &str) -> Result<&str, BadReason> {
        said("who", text, Self::WHO_MAX)
    }

    /// Why, without spaces around it.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn why(text: &str) -> Result<&str, BadReason> {
        said("why", text, Self::WHY_MAX)
    }
}

fn said<'a>(field: &'static str, text: &'a str, characters_max: usize) -> Result<&'a str, BadReason> {
    let text = text.trim();
    let fits = (1..=characters_max).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    fits.then_some(text).ok_or(BadReason {
        field,
        characters_max,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_says_something_and_fits_on_a_line() {
        let reason = Reason::read("cli", " maria ", " it is mended\n").unwrap();
        assert_eq!(
            (reason.actor.as_str(), reason.why.as_str()),
            ("cli:maria", "it is mended")
        );
        let (who, why) = ("é".repeat(100), "é".repeat(500));
        assert!(Reason::read("api", &who, &why).is_ok());
        for (who, why, field) in [
            ("", "mended", "who"),
            ("a\nb", "mended", "who"),
            (&*(who.clone() + "x"), "mended", "who"),
            ("maria", " ", "why"),
            ("maria", "a\u{1b}[2Jb", "why"),
            ("maria", &*(why + "x"), "why"),
        ] {
            assert_eq!(
                Reason::read("api", who, why).unwrap_err().field,
                field,
                "{who} {why}"
            );
        }
    }
}
