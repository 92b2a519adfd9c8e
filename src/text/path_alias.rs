//! Replaces the paths of a run's own directories in output, also while it is streamed.
//!
//! A command runs in a worktree below the user's cache directory, so every traceback would record
//! the user's name and a path that means nothing to anyone else.

use std::borrow::Cow;
use std::path::Path;

/// Paths, and what to write in their place.
#[derive(Debug, Clone, Default)]
pub struct PathAliases {
    /// Longest path first.
    aliases: Vec<(Vec<u8>, String)>,
}

impl PathAliases {
    /// Returns the aliases of a run in a worktree: the worktree becomes `.`.
    pub fn of_worktree(path: &Path) -> PathAliases {
        let mut aliases = PathAliases::default();
        aliases.add(path, ".");
        aliases
    }

    /// Adds an alias of an absolute path. Ignores others, and paths of a single component, which
    /// occur by chance.
    pub fn add(&mut self, path: &Path, alias: &str) {
        let path = path.as_os_str().as_encoded_bytes();
        if path.starts_with(b"/") && path.iter().filter(|byte| **byte == b'/').count() > 1 {
            self.aliases.push((path.to_vec(), alias.to_owned()));
            self.aliases
                .sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        }
    }

    pub fn replace<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let is_there =
            |(path, _): &(Vec<u8>, String)| memchr::memmem::find(text.as_bytes(), path).is_some();
        if !self.aliases.iter().any(is_there) {
            return Cow::Borrowed(text);
        }
        let replaced = self.replace_bytes(text.as_bytes());
        String::from_utf8(replaced).map_or(Cow::Borrowed(text), Cow::Owned)
    }

    pub fn replace_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut replaced = Vec::with_capacity(bytes.len());
        self.pass(bytes, true, &mut replaced);
        replaced
    }

    /// Appends the bytes to `output`, with paths replaced. Returns how many bytes were handled: the
    /// rest can be the beginning of a path, unless this is the end.
    fn pass(&self, bytes: &[u8], is_end: bool, output: &mut Vec<u8>) -> usize {
        let mut copied = 0;
        for at in memchr::memchr_iter(b'/', bytes) {
            if at < copied {
                continue;
            }
            let tail = &bytes[at..];
            for (path, alias) in &self.aliases {
                let could_go_on = tail.len() <= path.len() && path.starts_with(tail);
                if could_go_on && !is_end {
                    output.extend(&bytes[copied..at]);
                    return at;
                }
                if tail.starts_with(path) && !tail.get(path.len()).is_some_and(is_part_of_name) {
                    output.extend(&bytes[copied..at]);
                    output.extend(alias.as_bytes());
                    copied = at + path.len();
                    break;
                }
            }
        }
        output.extend(&bytes[copied..]);
        bytes.len()
    }
}

fn is_part_of_name(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || !byte.is_ascii()
}

/// Replaces paths in a stream. Holds back what can be the beginning of a path.
#[derive(Debug)]
pub struct PathAliasStream<'a> {
    aliases: &'a PathAliases,
    pending: Vec<u8>,
}

impl<'a> PathAliasStream<'a> {
    pub fn new(aliases: &'a PathAliases) -> PathAliasStream<'a> {
        PathAliasStream {
            aliases,
            pending: Vec::new(),
        }
    }

    /// Returns what can be passed on.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.pending.extend(bytes);
        let mut output = Vec::with_capacity(self.pending.len());
        let consumed = self.aliases.pass(&self.pending, false, &mut output);
        self.pending.drain(..consumed);
        output
    }

    /// Returns what was held back, at the end of the stream.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut output = Vec::new();
        self.aliases.pass(&self.pending, true, &mut output);
        self.pending.clear();
        output
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn aliases() -> PathAliases {
        let mut aliases = PathAliases::of_worktree(Path::new("/c/teddy/w"));
        aliases.add(Path::new("/c/teddy/w/tmp"), "$TMPDIR");
        aliases.add(Path::new("/"), "root");
        aliases
    }

    #[test]
    fn a_directory_of_the_run_is_replaced_and_its_neighbours_are_not() {
        for (text, expected) in [
            (
                "File \"/c/teddy/w/src/x.py\", line 1",
                "File \"./src/x.py\", line 1",
            ),
            ("cd /c/teddy/w\n", "cd .\n"),
            ("/c/teddy/w", "."),
            ("file:///c/teddy/w/x", "file://./x"),
            ("/c/teddy/w/tmp/x /c/teddy/w/tmpx", "$TMPDIR/x ./tmpx"),
            (
                "/c/teddy/w-2/x /c/teddy/w2 /c/teddy",
                "/c/teddy/w-2/x /c/teddy/w2 /c/teddy",
            ),
            ("-I/c/teddy/w/include:/c/teddy/w", "-I./include:."),
        ] {
            assert_eq!(aliases().replace(text), expected);
        }
    }

    proptest! {
        #[test]
        fn a_stream_in_pieces_gives_the_same(
            text in "(/c|/teddy|/w|/tmp|-|/|x|\n|/c/teddy/w|é){0,20}",
            cuts in proptest::collection::vec(0..40usize, 0..6),
        ) {
            let aliases = aliases();
            let (mut stream, mut output, mut start) = (PathAliasStream::new(&aliases), Vec::new(), 0);
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < text.len()).collect();
            cuts.sort_unstable();
            for cut in cuts {
                output.extend(stream.push(&text.as_bytes()[start..cut]));
                start = cut;
            }
            output.extend(stream.push(&text.as_bytes()[start..]));
            output.extend(stream.finish());
            prop_assert_eq!(String::from_utf8(output).unwrap(), aliases.replace(&text));
        }
    }
}
