//! Text of strangers on a terminal. What providers and targets send may hold characters that move the cursor,
//! change the title or turn the direction of writing; none of them reaches a person's screen as such.

use comfy_table::{Table, presets};
use serde::Serialize;

/// Errors and reasons longer than this are cut in tables; `--json` has all of them.
const SHORT_CHARS_MAX: usize = 60;

/// Whether a terminal may do more with this character than show it.
fn acts(character: char) -> bool {
    character.is_control()
        || matches!(character,
            // Invisible marks, line and paragraph separators, and what turns the direction of writing.
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Every such character as its escape, e.g. `\u{1b}`.
pub(super) fn text(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match acts(character) {
            true => safe.extend(character.escape_default()),
            false => safe.push(character),
        }
    }
    safe
}

/// As [`text`], in lines as they are: for a body on a terminal.
pub(in crate::command) fn lines(bytes: &[u8]) -> String {
    let lossy = String::from_utf8_lossy(bytes);
    let lines: Vec<String> = lossy.split('\n').map(text).collect();
    lines.join("\n")
}

/// The beginning of a text, or nothing. Names are never cut, since people copy them.
pub(super) fn short(long: Option<&str>) -> String {
    let mut characters = long.unwrap_or_default().chars();
    let mut short: String = characters.by_ref().take(SHORT_CHARS_MAX).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}

/// Rows under a heading, without lines, to be read by people and by `awk`.
pub(in crate::command) fn table<const COLUMNS: usize>(
    heading: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(heading);
    for row in rows {
        table.add_row(row.map(|cell| {
            if cell.is_empty() {
                "-".to_owned()
            } else {
                text(&cell)
            }
        }));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let lines: Vec<String> = table
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    lines.concat()
}

/// The document as JSON, with the same characters escaped. In JSON they can stand only within a string, where
/// an escape means the same.
pub(super) fn json(document: &impl Serialize) -> serde_json::Result<String> {
    let mut safe = String::new();
    for character in serde_json::to_string_pretty(document)?.chars() {
        match character != '\n' && acts(character) {
            true => {
                let mut units = [0; 2];
                let escapes = character.encode_utf16(&mut units).iter();
                safe.extend(escapes.map(|unit| format!("\\u{unit:04x}")));
            }
            false => safe.push(character),
        }
    }
    safe.push('\n');
    Ok(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\x1b]0;owned\x07b\u{9b}2Jc\u{202e}d\r\ne\u{2028}f\tg\u{0}h";

    #[test]
    fn no_character_acts_on_the_terminal() {
        let safe = text(HOSTILE);
        assert!(safe.chars().all(|character| !acts(character)), "{safe}");
        assert!(
            safe.starts_with(r"a\u{1b}]0;owned\u{7}b\u{9b}2Jc\u{202e}d\r\ne"),
            "{safe}"
        );
        assert_eq!(text("Grüße 🦀 \\ %"), "Grüße 🦀 \\ %");
    }

    #[test]
    fn json_says_the_same_without_such_characters() {
        let safe = json(&[HOSTILE]).unwrap();
        assert!(
            safe.chars()
                .all(|character| character == '\n' || !acts(character)),
            "{safe}"
        );
        let read: Vec<String> = serde_json::from_str(&safe).unwrap();
        assert_eq!(read, [HOSTILE]);
    }

    #[test]
    fn a_table_has_one_line_a_row() {
        let long = short(Some(&"x".repeat(200)));
        let table = table(
            ["A", "B"],
            [["one\ntwo".into(), String::new()], [long, "b".into()]],
        );
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 3, "{table}");
        assert!(
            lines[1].contains(r"one\ntwo") && lines[1].ends_with('-'),
            "{table}"
        );
        assert!(lines[2].contains('…') && lines[2].len() < 100, "{table}");
    }

    #[test]
    fn a_body_keeps_its_lines() {
        assert_eq!(
            lines(b"{\n \"a\": \"\x1b[31m\xff\"\n}"),
            "{\n \"a\": \"\\u{1b}[31m\u{fffd}\"\n}"
        );
    }
}
