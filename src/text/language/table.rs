//! Table of languages with their comments, strings and here-documents.

/// One or more languages with the same syntax.
pub(super) struct Language {
    /// Info strings and file extensions.
    pub names: &'static [&'static str],
    /// Start of a line comment.
    pub comments: &'static [&'static str],
    /// Delimiters of multi-line comments and strings, longest first.
    pub spans: &'static [(&'static str, &'static str)],
    /// Quotes of single-line strings.
    pub quotes: &'static [&'static str],
    /// `true` if `'` can also start a lifetime or character literal, as in Rust.
    pub lifetimes: bool,
    /// `true` if the language has here-documents.
    pub here: bool,
    /// `true` if the language has block scalars.
    pub blocks: bool,
}

const PLAIN: Language = Language {
    names: &[],
    comments: &[],
    spans: &[],
    quotes: &["\"", "'"],
    lifetimes: false,
    here: false,
    blocks: false,
};

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
