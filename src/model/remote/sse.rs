//! Server-sent events: bytes in any pieces become events.
//!
//! Line ends are CR, LF or CRLF, also when cut between two pieces; comments are skipped; several
//! `data:` lines are one event. A line or an event over the limit is an error, not memory.

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// The `event:` line; empty without one.
    pub name: String,
    /// The `data:` lines, joined by newlines.
    pub data: String,
}

/// A line or an event is larger than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

/// Splits a byte stream into events.
#[derive(Debug)]
pub struct Decoder {
    /// The line that has not ended.
    line: Vec<u8>,
    /// Whether the last byte was a CR, so that an LF now belongs to it.
    after_cr: bool,
    /// The event that has not ended; `None` before its first field.
    event: Option<SseEvent>,
    /// The largest event, in bytes.
    limit: usize,
}

impl Decoder {
    /// Makes a decoder that takes no line and no event over `limit` bytes.
    pub fn new(limit: usize) -> Decoder {
        Decoder {
            line: Vec::new(),
            after_cr: false,
            event: None,
            limit,
        }
    }

    /// Takes the next bytes and returns the events that they complete.
    ///
    /// # Errors
    /// [`TooLong`]; nothing more can be decoded after it.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, TooLong> {
        let mut events = Vec::new();
        for &byte in bytes {
            let follows_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if follows_cr => {}
                b'\n' | b'\r' => events.extend(self.end_line()?),
                _ if self.line.len() >= self.limit => return Err(TooLong),
                _ => self.line.push(byte),
            }
        }

        Ok(events)
    }

    /// Returns the event that the end of the stream completes: some servers leave the last blank
    /// line out.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn finish(&mut self) -> Result<Option<SseEvent>, TooLong> {
        if !self.line.is_empty() {
            self.end_line()?;
        }
        Ok(self.event.take())
    }

    /// Takes a line; a blank one ends the event.
    fn end_line(&mut self) -> Result<Option<SseEvent>, TooLong> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return Ok(self.event.take());
        }

        // A whole line is whole characters, wherever the pieces were cut.
        let line = String::from_utf8_lossy(&line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field.trim_start_matches('\u{feff}') {
            "event" => value.clone_into(&mut self.event.get_or_insert_default().name),
            "data" => self.add_data(value)?,
            _ => {}
        }

        Ok(None)
    }

    /// Adds a line of data to the event.
    fn add_data(&mut self, value: &str) -> Result<(), TooLong> {
        let data = &mut self.event.get_or_insert_default().data;
        if data.len() + value.len() >= self.limit {
            return Err(TooLong);
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

    fn decode(pieces: &[&[u8]]) -> Result<Vec<SseEvent>, TooLong> {
        let mut decoder = Decoder::new(1000);
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
        assert_eq!(decode(&[&[b'x'; 1001]]), Err(TooLong));
        assert_eq!(
            decode(&["data: aaaaaaaaa\n".repeat(200).as_bytes()]),
            Err(TooLong)
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
