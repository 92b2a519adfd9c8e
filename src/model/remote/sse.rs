//! Decodes server-sent events from a byte stream. Accepts CR, LF and CRLF, even if a chunk ends
//! between CR and LF. Joins several `data:` lines into one event and skips comments. A line or event
//! over the limit is an error, so memory is bounded.

use std::borrow::Cow;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// Empty if there is no `event:` line.
    pub name: String,
    /// The `data:` lines, joined with newlines.
    pub data: String,
    /// A line of it is not UTF-8.
    pub is_damaged: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTooLong;

#[derive(Debug)]
pub struct SseDecoder {
    line: Vec<u8>,
    /// An LF after a CR belongs to the same line end.
    after_cr: bool,
    /// `None` before its first field.
    event: Option<SseEvent>,
    /// In bytes.
    limit: usize,
}

impl SseDecoder {
    /// `limit` is for a line or event, in bytes.
    pub fn new(limit: usize) -> SseDecoder {
        SseDecoder {
            line: Vec::new(),
            after_cr: false,
            event: None,
            limit,
        }
    }

    /// The decoder is unusable after an error.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, EventTooLong> {
        let mut events = Vec::new();
        for &byte in bytes {
            let follows_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if follows_cr => {}
                b'\n' | b'\r' => events.extend(self.end_line()?),
                _ if self.line.len() >= self.limit => return Err(EventTooLong),
                _ => self.line.push(byte),
            }
        }

        Ok(events)
    }

    pub fn is_in_event(&self) -> bool {
        self.event.is_some() || self.line.first().is_some_and(|byte| *byte != b':')
    }

    pub fn finish(&mut self) -> Result<Option<SseEvent>, EventTooLong> {
        // Some servers omit the blank line after the last event.
        if !self.line.is_empty() {
            self.end_line()?;
        }
        Ok(self.event.take())
    }

    /// An empty line ends the event.
    fn end_line(&mut self) -> Result<Option<SseEvent>, EventTooLong> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return Ok(self.event.take());
        }

        // Decode whole lines only, so that chunks can't cut a character.
        let line = String::from_utf8_lossy(&line);
        let is_damaged = matches!(line, Cow::Owned(_));
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        // A stream can start with a byte order mark.
        match field.trim_start_matches('\u{feff}') {
            "event" => value.clone_into(&mut self.event.get_or_insert_default().name),
            "data" => {
                self.add_data(value)?;
                self.event.get_or_insert_default().is_damaged |= is_damaged;
            }
            _ => {}
        }

        Ok(None)
    }

    fn add_data(&mut self, value: &str) -> Result<(), EventTooLong> {
        let data = &mut self.event.get_or_insert_default().data;
        if data.len() + value.len() >= self.limit {
            return Err(EventTooLong);
        }

        if !data.is_empty() {
            data.push('\n');
        }

        data.push_str(value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_event_with_bytes_that_are_no_text_is_damaged() {
        let mut decoder = SseDecoder::new(1000);
        let events = decoder
            .feed(b": \xe9\n\ndata: a\ndata: \xe9\n\ndata: b\n\n")
            .unwrap();
        let damaged: Vec<bool> = events.iter().map(|event| event.is_damaged).collect();
        assert_eq!(damaged, [true, false]);
    }

    fn decode(pieces: &[&[u8]]) -> Result<Vec<SseEvent>, EventTooLong> {
        let mut decoder = SseDecoder::new(1000);
        let mut events = Vec::new();
        for piece in pieces {
            events.extend(decoder.feed(piece)?);
        }
        events.extend(decoder.finish()?);
        Ok(events)
    }

    fn check(text: &str, expected: &[(&str, &str)]) {
        let events = expected
            .iter()
            .map(|(name, data)| SseEvent {
                name: (*name).into(),
                data: (*data).into(),
                is_damaged: false,
            })
            .collect();
        assert_eq!(decode(&[text.as_bytes()]), Ok(events));
    }

    #[test]
    fn an_event_ends_with_a_blank_line_of_any_kind() {
        check(
            "data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\n\n",
            &[("", "a"), ("", "b"), ("", "c"), ("", "d")],
        );
    }

    #[test]
    fn comments_and_unknown_fields_say_nothing() {
        check(
            ": OPENROUTER PROCESSING\n\nid: 7\nretry: 3\nevent: ping\ndata: {}\n\n",
            &[("ping", "{}")],
        );
    }

    #[test]
    fn several_lines_of_data_are_one_event() {
        check("data: {\ndata:  \"a\"\ndata:}\n\n", &[("", "{\n \"a\"\n}")]);
    }

    #[test]
    fn a_last_event_without_its_blank_line_counts() {
        check("data: [DONE]", &[("", "[DONE]")]);
    }

    #[test]
    fn an_endless_line_is_an_error() {
        assert_eq!(decode(&[&[b'x'; 1001]]), Err(EventTooLong));
        assert_eq!(
            decode(&["data: aaaaaaaaa\n".repeat(200).as_bytes()]),
            Err(EventTooLong)
        );
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_give_the_same_events(
            lines in prop::collection::vec(("(data: |event: |: |)[a-z äöü€😀]{0,12}", "\n|\r\n|\r"), 0..12),
            cuts in prop::collection::vec(0usize..200, 0..8),
        ) {
            let text: String = lines.iter().map(|(line, end)| format!("{line}{end}")).collect();
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([0, bytes.len()]).collect();
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(decode(&pieces), decode(&[bytes]));
        }

        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = decode(&[&bytes]);
        }
    }
}
