//! How languages write what may span lines.

/// A language, or several that are alike.
pub(super) struct Language {
    /// The names that stand behind a fence, and the endings of files.
    pub names: &'static [&'static str],
    /// What begins a comment that goes to the end of its line.
    pub comments: &'static [&'static str],
    /// What begins and what ends a comment or a string that may span lines; the longest first.
    pub spans: &'static [(&'static str, &'static str)],
    /// The marks around strings that end in their line.
    pub quotes: &'static [&'static str],
    /// Whether a lone `'` is no string: one is a single character, or the name of a lifetime.
    pub lifetimes: bool,
    /// Whether there are here-documents.
    pub here: bool,
    /// Whether there are blocks of text that go as far as their indentation.
    pub blocks: bool,
}

/// A language without anything that spans lines.
const PLAIN: Language = Language {
    names: &[],
    comments: &[],
    spans: &[],
    quotes: &["\"", "'"],
    lifetimes: false,
    here: false,
    blocks: false,
};

/// The languages.
pub(super) const LANGUAGES: &[Language] = &[
    Language {
        names: &["rs", "rust"],
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
        names: &[
            "c",
            "h",
            "cc",
            "cpp",
            "cxx",
            "c++",
            "hpp",
            "hh",
            "hxx",
            "m",
            "mm",
            "cs",
            "csharp",
            "java",
            "js",
            "javascript",
            "jsx",
            "mjs",
            "cjs",
            "ts",
            "typescript",
            "tsx",
            "mts",
            "cts",
            "go",
            "golang",
            "css",
            "scss",
            "less",
            "proto",
            "zig",
            "v",
            "sv",
            "sol",
            "groovy",
            "gradle",
            "swift",
            "kt",
            "kts",
            "kotlin",
            "scala",
            "dart",
            "php",
            "glsl",
            "wgsl",
            "jsonc",
            "json5",
        ],
        comments: &["//"],
        spans: &[("/*", "*/"), ("\"\"\"", "\"\"\""), ("'''", "'''")],
        ..PLAIN
    },
    Language {
        names: &[
            "py", "pyi", "pyx", "python", "python3", "toml", "ex", "exs", "elixir", "gd", "bzl",
            "starlark", "graphql", "gql", "feature", "gherkin",
        ],
        comments: &["#"],
        spans: &[("\"\"\"", "\"\"\""), ("'''", "'''")],
        ..PLAIN
    },
    Language {
        names: &["jl", "julia"],
        comments: &["#"],
        spans: &[("\"\"\"", "\"\"\""), ("#=", "=#")],
        ..PLAIN
    },
    Language {
        names: &[
            "sh",
            "shell",
            "bash",
            "zsh",
            "ksh",
            "console",
            "terminal",
            "shellscript",
            "dockerfile",
            "tf",
            "hcl",
            "terraform",
        ],
        comments: &["#"],
        here: true,
        ..PLAIN
    },
    Language {
        names: &["rb", "ruby", "pl", "pm", "perl"],
        comments: &["#"],
        spans: &[("=begin", "=end"), ("=pod", "=cut"), ("=head1", "=cut")],
        here: true,
        ..PLAIN
    },
    Language {
        names: &["html", "htm", "xhtml", "xml", "svg", "vue", "svelte"],
        spans: &[("<!--", "-->"), ("/*", "*/")],
        quotes: &[],
        ..PLAIN
    },
    Language {
        names: &["sql"],
        comments: &["--"],
        spans: &[("/*", "*/")],
        ..PLAIN
    },
    Language {
        names: &["lua"],
        spans: &[("--[[", "]]"), ("[[", "]]")],
        ..PLAIN
    },
    Language {
        names: &["hs", "haskell", "elm", "purs"],
        comments: &["--"],
        spans: &[("{-", "-}")],
        quotes: &["\""],
        ..PLAIN
    },
    Language {
        names: &["ml", "mli", "ocaml", "fs", "fsharp", "pas"],
        spans: &[("(*", "*)"), ("\"\"\"", "\"\"\"")],
        quotes: &["\""],
        ..PLAIN
    },
    Language {
        names: &["ps1", "psm1", "powershell"],
        comments: &["#"],
        spans: &[("<#", "#>"), ("@\"", "\"@"), ("@'", "'@")],
        ..PLAIN
    },
    Language {
        names: &["yml", "yaml"],
        comments: &["#"],
        blocks: true,
        ..PLAIN
    },
    Language {
        names: &[
            "json",
            "csv",
            "tsv",
            "ini",
            "cfg",
            "conf",
            "env",
            "lock",
            "properties",
            "bat",
            "cmd",
            "diff",
            "patch",
            "asm",
            "s",
            "f90",
            "make",
            "makefile",
            "mk",
            "cmake",
            "r",
            "log",
            "gitignore",
        ],
        ..PLAIN
    },
];
