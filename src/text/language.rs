//! Finds multi-line comments, strings and here-documents in source code.
//!
//! Only these can contain a line that looks like a code fence. The scanner is approximate. It
//! reports a span only if it sees both ends, so its mistakes tend towards no span.

use super::has_word;

/// One or more languages with the same syntax.
struct Language {
    /// Info strings and file extensions.
    names: &'static str,
    /// Start of a line comment.
    comments: &'static [&'static str],
    /// Delimiters of multi-line comments and strings, longest first.
    spans: &'static [(&'static str, &'static str)],
    /// Quotes of single-line strings.
    quotes: &'static [&'static str],
    /// `true` if `'` can also start a lifetime or character literal, as in Rust.
    lifetimes: bool,
    /// `true` if the language has here-documents.
    here: bool,
    /// `true` if the language has block scalars.
    blocks: bool,
}

const PLAIN: Language = Language {
    names: "",
    comments: &[],
    spans: &[],
    quotes: &["\"", "'"],
    lifetimes: false,
    here: false,
    blocks: false,
};

const LANGUAGES: &[Language] = &[
    Language {
        names: "rs rust",
        comments: &["//"],
        spans: &[
            ("/*", "*/"),
            ("r###\"", "\"###"),
            ("r##\"", "\"##"),
            ("r#\"", "\"#"),
        ],
        lifetimes: true,
        ..PLAIN
    },
    Language {
        names: "c h cc cpp cxx c++ hpp hh hxx m mm cs csharp java js javascript jsx mjs cjs ts \
            typescript tsx mts cts go golang css scss less proto zig v sv sol groovy gradle \
            swift kt kts kotlin scala dart php glsl wgsl jsonc json5",
        comments: &["//"],
        spans: &[("/*", "*/"), ("\"\"\"", "\"\"\""), ("'''", "'''")],
        ..PLAIN
    },
    Language {
        names: "py pyi pyx python python3 toml ex exs elixir gd bzl starlark graphql gql feature \
            gherkin",
        comments: &["#"],
        spans: &[("\"\"\"", "\"\"\""), ("'''", "'''")],
        ..PLAIN
    },
    Language {
        names: "jl julia",
        comments: &["#"],
        spans: &[("\"\"\"", "\"\"\""), ("#=", "=#")],
        ..PLAIN
    },
    Language {
        names: "sh shell bash zsh ksh console terminal shellscript dockerfile tf hcl terraform",
        comments: &["#"],
        here: true,
        ..PLAIN
    },
    Language {
        names: "rb ruby pl pm perl",
        comments: &["#"],
        spans: &[("=begin", "=end"), ("=pod", "=cut"), ("=head1", "=cut")],
        here: true,
        ..PLAIN
    },
    Language {
        names: "html htm xhtml xml svg vue svelte",
        spans: &[("<!--", "-->"), ("/*", "*/")],
        quotes: &[],
        ..PLAIN
    },
    Language {
        names: "sql",
        comments: &["--"],
        spans: &[("/*", "*/")],
        ..PLAIN
    },
    Language {
        names: "lua",
        spans: &[("--[[", "]]"), ("[[", "]]")],
        ..PLAIN
    },
    Language {
        names: "hs haskell elm purs",
        comments: &["--"],
        spans: &[("{-", "-}")],
        quotes: &["\""],
        ..PLAIN
    },
    Language {
        names: "ml mli ocaml fs fsharp pas",
        spans: &[("(*", "*)"), ("\"\"\"", "\"\"\"")],
        quotes: &["\""],
        ..PLAIN
    },
    Language {
        names: "ps1 psm1 powershell",
        comments: &["#"],
        spans: &[("<#", "#>"), ("@\"", "\"@"), ("@'", "'@")],
        ..PLAIN
    },
    Language {
        names: "yml yaml",
        comments: &["#"],
        blocks: true,
        ..PLAIN
    },
    Language {
        names: "json csv tsv ini cfg conf env lock properties bat cmd diff patch asm s f90 make \
            makefile mk cmake r log gitignore",
        ..PLAIN
    },
];

/// Returns `true` for a known name or file extension of a language.
pub fn is_known(word: &str) -> bool {
    find(word).is_some()
}

/// Returns for each line whether it starts inside a span that is closed later. All `false` for an
/// unknown language.
pub fn spanned(word: &str, lines: &[&str]) -> Vec<bool> {
    let mut spanned = vec![false; lines.len()];
    let Some(language) = find(word) else {
        return spanned;
    };
    let (mut reader, mut since) = (
        LanguageReader {
            language,
            open: None,
            terminators: Vec::new(),
        },
        0,
    );

    for (at, line) in lines.iter().enumerate() {
        let was_inside = reader.is_inside();
        let ended = reader.read(line);
        if was_inside && ended {
            spanned[since + 1..=at].fill(true);
        }

        if !was_inside || ended {
            since = at;
        }
    }

    spanned
}

fn find(word: &str) -> Option<&'static Language> {
    let word = word.to_ascii_lowercase();
    LANGUAGES
        .iter()
        .find(|language| has_word(language.names, &word))
}

struct LanguageReader {
    language: &'static Language,
    /// The construct that is open at the end of the previous line.
    open: Option<OpenConstruct>,
    /// Terminators of the pending here-documents, in order.
    terminators: Vec<String>,
}

#[derive(Clone, Copy)]
enum OpenConstruct {
    /// Closing delimiter of the comment or string.
    Span(&'static str),
    /// A YAML block scalar, whose lines are indented by more than this.
    Indented(usize),
}

impl LanguageReader {
    /// Returns `true` if the next line starts inside a span.
    fn is_inside(&self) -> bool {
        self.open.is_some() || !self.terminators.is_empty()
    }

    /// Reads a line. Returns `true` if an open span ended in this line or before it.
    fn read(&mut self, line: &str) -> bool {
        if let Some(word) = self.terminators.first() {
            let ends = line.trim() == word;
            if ends {
                self.terminators.remove(0);
            }
            return ends;
        }

        let ended = match self.open {
            Some(OpenConstruct::Indented(than)) => {
                // Every line of a block scalar is inside for certain; it needs no closing
                // delimiter.
                if line.trim().is_empty() || indent(line) > than {
                    return true;
                }
                self.open = None;
                false
            }
            Some(OpenConstruct::Span(close)) => {
                let Some(end) = end_of(line, close) else {
                    return false;
                };
                self.open = None;
                self.scan(&line[end..]);
                return true;
            }
            None => false,
        };

        self.scan(line);
        if self.language.blocks && self.open.is_none() && opens_block(line) {
            let key = line.trim_start_matches([' ', '-']);
            self.open = Some(OpenConstruct::Indented(line.len() - key.len()));
        }

        ended
    }

    fn scan(&mut self, line: &str) {
        let mut at = 0;
        while let Some(tail) = line.get(at..).filter(|tail| !tail.is_empty()) {
            if let Some((open, close)) = self.span(tail) {
                let from = at + open.len();
                let Some(end) = end_of(&line[from..], close) else {
                    self.open = Some(OpenConstruct::Span(close));
                    return;
                };
                at = from + end;
            } else if self.is_comment(&line[..at], tail) {
                return;
            } else if let Some(len) = self.quoted(tail) {
                at += len;
            } else if let Some((word, len)) = self.here(tail) {
                self.terminators.push(word.to_owned());
                at += len;
            } else {
                at += tail.chars().next().map_or(1, char::len_utf8);
            }
        }
    }

    fn span(&self, tail: &str) -> Option<(&'static str, &'static str)> {
        let spans = self.language.spans.iter();
        spans.copied().find(|(open, _)| tail.starts_with(open))
    }

    /// Returns `true` if the rest of the line is a comment. `#` must start a word, as in a shell.
    fn is_comment(&self, before: &str, tail: &str) -> bool {
        let begins_word = !before.ends_with(|c: char| !c.is_whitespace());
        let mut marks = self.language.comments.iter();
        marks.any(|mark| tail.starts_with(mark) && (*mark != "#" || begins_word))
    }

    /// Returns the length of a string that ends on the same line.
    fn quoted(&self, tail: &str) -> Option<usize> {
        let mark = tail.chars().next()?;
        let close = self
            .language
            .quotes
            .iter()
            .find(|quote| quote.starts_with(mark))?;
        let len = 1 + end_of(&tail[1..], close)?;
        let is_lifetime = self.language.lifetimes
            && mark == '\''
            && !tail[1..].starts_with('\\')
            && tail[1..len].chars().count() > 2;

        (!is_lifetime).then_some(len)
    }

    /// Returns the terminator of a here-document that starts here, and the length of its operator.
    fn here<'a>(&self, tail: &'a str) -> Option<(&'a str, usize)> {
        let after = tail.strip_prefix("<<").filter(|_| self.language.here)?;
        let word = after.trim_start_matches(['-', '~', ' ', '\t']);
        let quote = word.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let name = &word[usize::from(quote.is_some() || word.starts_with('\\'))..];
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let len = name.find(|c| !is_part(c)).unwrap_or(name.len());
        let starts = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let is_closed = quote.is_none_or(|quote| name[len..].starts_with(quote));
        let read = tail.len() - name.len() + len + usize::from(quote.is_some());

        (starts && is_closed).then(|| (&name[..len], read))
    }
}

/// Returns the offset after the closing delimiter. A backslash can escape a single-character one.
fn end_of(text: &str, close: &str) -> Option<usize> {
    if close.len() > 1 {
        return text.find(close).map(|at| at + close.len());
    }

    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if !escaped && close.starts_with(c) {
            return Some(at + 1);
        }
        escaped = c == '\\' && !escaped;
    }

    None
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn opens_block(line: &str) -> bool {
    let text = line
        .trim_end()
        .trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-'));
    let before = text.strip_suffix(['|', '>']);
    before.is_some_and(|before| before.trim_end().ends_with([':', '-']) && before.ends_with(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the lines that start inside a span, marked with `x`.
    fn check(word: &str, program: &str, expected: &str) {
        let lines: Vec<&str> = program.lines().collect();
        let marks: String = spanned(word, &lines)
            .into_iter()
            .map(|inside| if inside { 'x' } else { '.' })
            .collect();
        assert_eq!(marks, expected, "{word}: {program}");
    }

    #[test]
    fn comments_and_strings_that_span_lines_hold_what_is_inside() {
        check("rs", "/*!\n```\n*/\nfn a() {}\n", ".xx.");
        check("rust", "doc = r##\"\n\"#\n```\n\"##\n", ".xxx");
        check(
            "python",
            "def f():\n    \"\"\"Say.\n```\n    \"\"\"\nx\n",
            "..xx.",
        );
        check("html", "<!--\n```\n-->\n", ".xx");
        check("lua", "--[[\n```\n]]\n-- [[\nx\n", ".xx..");
    }

    #[test]
    fn a_here_document_goes_up_to_its_word() {
        check("sh", "cat > a <<'EOF'\n```\nEOF\nls\n", ".xx.");
        check("bash", "cat <<-A <<B\n1\nA\n2\nB\nls\n", ".xxxx.");
        check("", "cat <<A\nx\nA\n", "...");
        check("sh", "echo $((1<<2)) <<< word\nA\n", "..");
        check("sh", "echo '<<A' # <<B\nA\nB\n", "...");
    }

    #[test]
    fn what_is_never_closed_is_none() {
        check("sh", "cat <<EOF\n```\nx\n", "...");
        check("c", "/* a\n```\n", "..");
        check("py", "a = \"\"\"\n```\n", "..");
    }

    #[test]
    fn what_only_looks_like_a_beginning_is_none() {
        check("rs", "glob(\"src/**/*.rs\"); // /*\n```\n*/\n", "...");
        check("rs", "let q = '\"';\n```\nlet r = '\"';\n", "...");
        check(
            "rs",
            "fn f<'a>(x: &'a str) { \"it's /*\" }\n```\n*/\n",
            "...",
        );
        check("py", "# don't \"\"\"\n```\n\"\"\"x\"\"\"\n", "...");
        check("sh", "ls # it's\n```\nit's\n", "...");
        check("json", "/*\n```\n*/\n", "...");
    }

    #[test]
    fn a_block_of_yaml_goes_as_far_as_its_indentation() {
        check("yml", "a: |\n  ```\n  x\n\n  ```\nb: 1\n", ".xxxx.");
        check("yaml", "- run: >-\n    ```\n  b: |x\n  ```\n", ".x..");
    }
}
