//! Bytes that were read in one charset and written in another.

/// What happened to the letters of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    /// Signed as UTF-8; then read as Latin-1 and written as UTF-8.
    Latin1Read,
    /// Signed as UTF-8; then read as Windows-1252 and written as UTF-8.
    Windows1252Read,
    /// Signed as UTF-8; then written as Latin-1.
    Latin1Written,
    /// Signed as UTF-8; then written as Windows-1252.
    Windows1252Written,
    /// Signed as UTF-8; then written as UTF-16, as an older PowerShell saves a file.
    Utf16Written,
    /// Signed as UTF-16 with the low byte first; then written as UTF-8.
    Utf16Read,
}

impl Charset {
    pub(super) const ALL: [Self; 6] = [
        Self::Latin1Read,
        Self::Windows1252Read,
        Self::Latin1Written,
        Self::Windows1252Written,
        Self::Utf16Written,
        Self::Utf16Read,
    ];

    /// The bytes as they were signed, if this can have happened to them.
    pub(super) fn undo(self, body: &[u8]) -> Option<Vec<u8>> {
        let text = || std::str::from_utf8(body).ok();
        let each = |byte: fn(char) -> Option<u8>| text()?.chars().map(byte).collect();
        match self {
            Self::Latin1Read => each(|char| u8::try_from(u32::from(char)).ok()),
            Self::Windows1252Read => each(windows_1252_byte),
            Self::Latin1Written => Some(
                body.iter()
                    .map(|&byte| char::from(byte))
                    .collect::<String>()
                    .into(),
            ),
            Self::Windows1252Written => Some(
                body.iter()
                    .map(|&byte| windows_1252_char(byte))
                    .collect::<String>()
                    .into(),
            ),
            Self::Utf16Written => utf16(body),
            Self::Utf16Read => Some(text()?.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        }
    }
}

/// With its mark, or by the byte of zeros that an ASCII beginning has; the line break that the shell adds goes, too.
fn utf16(body: &[u8]) -> Option<Vec<u8>> {
    let (rest, unit): (_, fn([u8; 2]) -> u16) = match body {
        [0xff, 0xfe, rest @ ..] => (rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => (rest, u16::from_be_bytes),
        [_, 0, ..] => (body, u16::from_le_bytes),
        [0, _, ..] => (body, u16::from_be_bytes),
        _ => return None,
    };
    let (pairs, []) = rest.as_chunks::<2>() else {
        return None;
    };
    let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    let text = String::from_utf16(&units).ok()?;
    Some(text.strip_suffix("\r\n").unwrap_or(&text).as_bytes().to_vec())
}

/// 0x80 to 0x9f; the five that are not assigned stand for themselves, as browsers read them.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

fn windows_1252_char(byte: u8) -> char {
    match byte {
        0x80..=0x9f => WINDOWS_1252[usize::from(byte - 0x80)],
        byte => char::from(byte),
    }
}

fn windows_1252_byte(char: char) -> Option<u8> {
    match WINDOWS_1252.iter().position(|known| *known == char) {
        Some(index) => u8::try_from(0x80 + index).ok(),
        None => u8::try_from(u32::from(char)).ok(),
    }
}
