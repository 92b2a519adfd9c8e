//! Renders `input.md`, the payload for the model (`docs/formats/input.md`).
//!
//! Pure: equal material gives equal bytes.

use super::requests::{RequestState, Requests, UserRequest};
use crate::text::counted;
use crate::text::fence::fence_for;
use crate::text::sanitize::sanitize_line;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListScope {
    /// `turn.context`: one turn.
    Turn,
    /// `session.context`: this session.
    Session,
    /// `global.context`: every session.
    Global,
}

impl ListScope {
    pub const ALL: [ListScope; 3] = [ListScope::Turn, ListScope::Session, ListScope::Global];

    pub fn title(self) -> &'static str {
        match self {
            ListScope::Turn => "Turn",
            ListScope::Session => "Session",
            ListScope::Global => "Global",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputResource {
    /// The first list that names it.
    pub scope: ListScope,
    /// A path, a URL, or the name of an artifact.
    pub resource: String,
    pub body: ResourceBody,
    /// In the text.
    pub tokens: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceBody {
    Text(String),
    Missing,
    Binary {
        bytes: u64,
    },
    TooLarge {
        bytes: u64,
    },
    /// A user request: shown in the section for requests instead.
    Request,
    Failed(String),
}

impl ResourceBody {
    /// Classifies the bytes of a file as text, binary, or larger than `limit`.
    pub fn of(bytes: &[u8], limit: u64) -> ResourceBody {
        let size = bytes.len() as u64;
        if size > limit {
            return ResourceBody::TooLarge { bytes: size };
        }

        match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => ResourceBody::Text(text.to_owned()),
            _ => ResourceBody::Binary { bytes: size },
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Material {
    pub cwd: String,
    pub os: String,
    /// The shells that run EXECUTE actions.
    pub shell: String,
    /// What the sandbox lets commands do.
    pub sandbox: String,
    /// The file tree, rendered by [`structure`].
    pub structure: String,
    /// Content of `.teddy/memos.yaml`, if it exists.
    pub memos: Option<String>,
    /// In list order.
    pub resources: Vec<InputResource>,
    /// The branch and `git status`.
    pub status: String,
    pub session: String,
    pub requests: Requests,
}

pub fn render(material: &Material) -> String {
    let mut text = String::from("# Agent Invocation Payload\n\n## 1. System Information\n");
    for (key, value) in [
        ("CWD", &material.cwd),
        ("OS", &material.os),
        ("Shell", &material.shell),
        ("Commands", &material.sandbox),
    ] {
        text += &format!("- **{key}:** {}\n", sanitize_line(value));
    }

    text.push_str("\n## 2. Project Structure\n");
    write_block(&mut text, "", &material.structure);
    if let Some(memos) = &material.memos {
        text.push_str("\n## 3. Memos\n");
        write_block(&mut text, "", memos);
    }

    text.push_str("\n## 4. Context Summary\n");
    write_summary(&mut text, &material.resources);
    text.push_str("\n## 5. Resource Contents\n\n");
    for entry in &material.resources {
        write_resource(&mut text, entry);
    }

    text.push_str("---\n\n## 6. Git Status\n");
    write_block(&mut text, "", &material.status);
    write_requests(&mut text, material);
    text
}

// The section grows only at its end, so providers can cache everything before it. It comes last
// because the user's message follows it.
fn write_requests(text: &mut String, material: &Material) {
    let Requests {
        requests, left_out, ..
    } = &material.requests;
    if requests.is_empty() {
        return;
    }

    text.push_str("\n## 7. User Requests\n\n");
    text.push_str(
        "What the user asked for before, oldest first. A later request goes before an earlier one.\n",
    );
    for (index, request) in requests.iter().enumerate() {
        if index == 1 && *left_out > 0 {
            let omitted = counted(usize::try_from(*left_out).unwrap_or(usize::MAX), "request");
            *text += &format!("\n({omitted} left out)\n");
        }

        let session = match &request.session {
            session if *session == material.session => String::new(),
            session => format!(" of {}", sanitize_line(session)),
        };
        *text += &format!(
            "\n### Turn {}{session}{}\n",
            request.turn,
            request_state(request)
        );
        if let Some(question) = &request.question {
            text.push_str("Your question:\n");
            write_block(text, "markdown", question);
            text.push_str("The answer:\n");
        }

        write_block(text, "text", &request.text);
    }
}

fn request_state(request: &UserRequest) -> &'static str {
    match (request.state, &request.work) {
        (RequestState::Undone, _) => " (undone since)",
        (RequestState::Replaced, _) => " (said before the turn's own message; nothing ran for it)",
        (RequestState::Open, Some(_)) => " (the work to be done)",
        (RequestState::Open, None) => "",
    }
}

fn write_summary(text: &mut String, resources: &[InputResource]) {
    for scope in ListScope::ALL {
        let listed: Vec<&InputResource> = resources
            .iter()
            .filter(|entry| entry.scope == scope)
            .collect();
        if listed.is_empty() {
            continue;
        }

        *text += &format!("\n### {}\n", scope.title());
        for entry in listed {
            let note = match &entry.body {
                ResourceBody::Text(_) => counted(entry.tokens, "token"),
                ResourceBody::Missing => "missing".to_owned(),
                ResourceBody::Binary { .. } => "binary".to_owned(),
                ResourceBody::TooLarge { .. } => "too large".to_owned(),
                ResourceBody::Request => "in 7. User Requests".to_owned(),
                ResourceBody::Failed(_) => "not available".to_owned(),
            };
            *text += &format!("- {} ({note})\n", resource_link(&entry.resource));
        }
    }

    let total: usize = resources.iter().map(|entry| entry.tokens).sum();
    *text += &format!(
        "\n**Total:** {} in {}\n",
        counted(total, "token"),
        counted(resources.len(), "resource")
    );
}

fn write_resource(text: &mut String, entry: &InputResource) {
    text.push_str("---\n");
    *text += &format!("**Resource:** `{}`\n", resource_link(&entry.resource));
    *text += &format!("**Tokens:** {}\n", entry.tokens);

    match &entry.body {
        ResourceBody::Text(contents) => write_block(text, language(&entry.resource), contents),
        ResourceBody::Missing => write_block(text, "", "--- FILE NOT FOUND ---\n"),
        ResourceBody::Binary { bytes } => {
            write_block(text, "", &format!("--- BINARY FILE, {bytes} BYTES ---\n"))
        }
        ResourceBody::TooLarge { bytes } => write_block(
            text,
            "",
            &format!("--- FILE OF {bytes} BYTES, OVER THE LIMIT ---\n"),
        ),
        ResourceBody::Request => write_block(text, "", "--- SHOWN IN 7. USER REQUESTS ---\n"),
        ResourceBody::Failed(reason) => write_block(
            text,
            "",
            &format!("--- NOT AVAILABLE: {} ---\n", sanitize_line(reason)),
        ),
    }
}

fn resource_link(resource: &str) -> String {
    let rendered = sanitize_line(resource);
    if crate::text::resource::is_url(resource) {
        return format!("[{rendered}]({rendered})");
    }

    if resource.contains([' ', '(', ')', '<', '>']) {
        format!("[{rendered}](</{rendered}>)")
    } else {
        format!("[{rendered}](/{rendered})")
    }
}

/// In a fence longer than any inside the contents.
pub fn write_block(text: &mut String, language: &str, contents: &str) {
    let fence = fence_for(contents, 4);
    *text += &format!("{fence}{language}\n");
    text.push_str(contents);
    if !contents.is_empty() && !contents.ends_with('\n') {
        text.push('\n');
    }
    *text += &format!("{fence}\n");
}

pub fn language(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name
        .rsplit_once('.')
        .map(|(_, ending)| ending)
        .unwrap_or_default()
    {
        "rs" => "rust",
        "py" => "python",
        "md" | "markdown" => "markdown",
        "sh" | "bash" => "shell",
        "yml" | "yaml" => "yaml",
        "toml" => "toml",
        "json" => "json",
        "js" | "mjs" | "cjs" => "javascript",
        "ts" => "typescript",
        "tsx" => "tsx",
        "go" => "go",
        "java" => "java",
        "c" | "h" => "c",
        "cpp" | "cc" | "hpp" => "cpp",
        "html" => "html",
        "css" => "css",
        "xml" => "xml",
        "sql" => "sql",
        "rb" => "ruby",

        _ => "text",
    }
}

/// Maximum number of lines. Larger trees show deep directories as file counts.
const MAX_STRUCTURE: usize = 3000;

#[derive(Default)]
struct StructureDir<'a> {
    dirs: Vec<(&'a str, StructureDir<'a>)>,
    files: Vec<&'a str>,
}

impl<'a> StructureDir<'a> {
    /// `paths` are sorted. The first `skip` bytes of each are the directory's own.
    fn of(paths: &[&'a str], skip: usize) -> StructureDir<'a> {
        let mut dir = StructureDir::default();
        let mut at = 0;
        while at < paths.len() {
            let path = paths[at];
            let Some(end) = path[skip..].find('/') else {
                dir.files.push(&path[skip..]);
                at += 1;
                continue;
            };

            // Paths are sorted, so those below one directory are adjacent.
            let inside = &path[..=skip + end];
            let length = paths[at..].partition_point(|path| path.starts_with(inside));
            let inner = StructureDir::of(&paths[at..at + length], inside.len());
            dir.dirs.push((&path[skip..skip + end], inner));
            at += length;
        }

        dir.dirs.sort_unstable_by_key(|(name, _)| *name);
        dir
    }

    fn depth(&self) -> usize {
        let depths = self.dirs.iter().map(|(_, inner)| 1 + inner.depth());
        depths.max().unwrap_or(0)
    }
}

/// Directories first. Shows deep directories as counts above [`MAX_STRUCTURE`] lines.
pub fn structure(paths: &[impl AsRef<str>]) -> String {
    let mut sorted: Vec<&str> = paths.iter().map(AsRef::as_ref).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let root = StructureDir::of(&sorted, 0);
    let fits = |depth: &usize| count_lines(&root, *depth) <= MAX_STRUCTURE;
    let depth = (0..=root.depth()).rev().find(fits).unwrap_or(0);
    let mut text = String::new();

    write_dir(&mut text, &root, 0, depth);
    text
}

fn count_lines(dir: &StructureDir<'_>, depth: usize) -> usize {
    let nested_lines = |inner: &StructureDir<'_>| {
        if depth == 0 {
            0
        } else {
            count_lines(inner, depth - 1)
        }
    };
    dir.files.len()
        + dir
            .dirs
            .iter()
            .map(|(_, inner)| 1 + nested_lines(inner))
            .sum::<usize>()
}

fn write_dir(text: &mut String, dir: &StructureDir<'_>, indent: usize, depth: usize) {
    for (name, inner) in &dir.dirs {
        let pad = "  ".repeat(indent);
        if depth == 0 {
            *text += &format!(
                "{pad}{}/ ({})\n",
                sanitize_line(name),
                counted(count_files(inner), "file")
            );
        } else {
            *text += &format!("{pad}{}/\n", sanitize_line(name));
            write_dir(text, inner, indent + 1, depth - 1);
        }
    }

    for name in &dir.files {
        *text += &format!("{}{}\n", "  ".repeat(indent), sanitize_line(name));
    }
}

fn count_files(dir: &StructureDir<'_>) -> usize {
    let dirs = dir.dirs.iter();
    dir.files.len() + dirs.map(|(_, inner)| count_files(inner)).sum::<usize>()
}

// Parses the resource list of an `input.md`.
//
// Skips fenced blocks, because resource contents can contain the same headings.

const MAX_SUMMARY_RESOURCES: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceTokens {
    /// A path, a URL, or the name of an artifact.
    pub name: String,
    /// `None` if the resource was not text.
    pub tokens: Option<u64>,
    /// Why it was not text, as the input words it.
    pub note: Option<String>,
}

/// In order of the section "Context Summary".
pub fn read_summary(input: &str) -> Vec<ResourceTokens> {
    let mut fence = 0;
    let mut is_inside = false;
    let mut entries = Vec::new();
    for line in input.lines() {
        let run = line.bytes().take_while(|byte| *byte == b'`').count();
        if fence > 0 {
            if run >= fence && run == line.len() {
                fence = 0;
            }
            continue;
        }
        if run >= 3 {
            fence = run;
            continue;
        }

        if line.starts_with("## ") {
            if is_inside {
                break;
            }
            is_inside = line.ends_with(" Context Summary");
        } else if is_inside && entries.len() < MAX_SUMMARY_RESOURCES {
            entries.extend(parse_resource(line));
        }
    }

    entries
}

/// `- [a.md](/a.md) (5 tokens)`
fn parse_resource(line: &str) -> Option<ResourceTokens> {
    let tail = line.strip_prefix("- [")?;
    let (link, note) = tail.rsplit_once(" (")?;
    let note = note.strip_suffix(')')?;
    let (name, _) = link.split_once("](")?;
    let number = note.strip_suffix(" tokens");
    let number = number.or_else(|| note.strip_suffix(" token"));
    let tokens = number.and_then(|number| number.parse().ok());
    Some(ResourceTokens {
        name: name.to_owned(),
        tokens,
        note: tokens.is_none().then(|| note.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_first_and_are_indented_by_two() {
        let text = structure(&["README.md", "docs/specs/a.md", "src/main.rs", "README.md"]);
        assert_eq!(
            text,
            "docs/\n  specs/\n    a.md\nsrc/\n  main.rs\nREADME.md\n"
        );
    }

    #[test]
    fn a_huge_project_is_shown_as_folders_with_counts() {
        let many: Vec<String> = (0..MAX_STRUCTURE)
            .map(|n| format!("big/f{n}"))
            .chain(["a".to_owned()])
            .collect();
        assert_eq!(
            structure(&many),
            format!("big/ ({} files)\na\n", MAX_STRUCTURE)
        );
    }

    #[test]
    fn the_input_has_numbered_sections_and_sized_fences() {
        let material = Material {
            cwd: "/p".to_owned(),
            os: "Linux".to_owned(),
            shell: "sh".to_owned(),
            sandbox: "not sandboxed".to_owned(),
            structure: structure(&["a.md"]),
            memos: None,
            resources: vec![
                InputResource {
                    scope: ListScope::Turn,
                    resource: "a.md".to_owned(),
                    body: ResourceBody::Text("x\n````\ny\n````".to_owned()),
                    tokens: 5,
                },
                InputResource {
                    scope: ListScope::Global,
                    resource: "gone.md".to_owned(),
                    body: ResourceBody::Missing,
                    tokens: 0,
                },
            ],
            status: "On branch main\n".to_owned(),
            ..Material::default()
        };
        let expected = "# Agent Invocation Payload\n\n## 1. System Information\n- **CWD:** /p\n- **OS:** Linux\n- **Shell:** sh\n- **Commands:** not sandboxed\n\n\
            ## 2. Project Structure\n````\na.md\n````\n\n\
            ## 4. Context Summary\n\n### Turn\n- [a.md](/a.md) (5 tokens)\n\n### Global\n- [gone.md](/gone.md) (missing)\n\n**Total:** 5 tokens in 2 resources\n\n\
            ## 5. Resource Contents\n\n---\n**Resource:** `[a.md](/a.md)`\n**Tokens:** 5\n`````markdown\nx\n````\ny\n````\n`````\n\
            ---\n**Resource:** `[gone.md](/gone.md)`\n**Tokens:** 0\n````\n--- FILE NOT FOUND ---\n````\n---\n\n\
            ## 6. Git Status\n````\nOn branch main\n````\n";
        assert_eq!(render(&material), expected);
    }
}

#[cfg(test)]
mod summary_tests {
    use super::*;
    use super::{InputResource, ListScope, Material, ResourceBody, render};

    /// Compares each resource by name and by its tokens or note.
    #[track_caller]
    fn check(input: &str, expected: &[(&str, &str)]) {
        let actual = read_summary(input);
        let actual: Vec<(&str, String)> = actual
            .iter()
            .map(|one| {
                let tokens = one.tokens.map(|tokens| tokens.to_string());
                (
                    one.name.as_str(),
                    tokens.or(one.note.clone()).unwrap_or_default(),
                )
            })
            .collect();
        let actual: Vec<(&str, &str)> =
            actual.iter().map(|(name, n)| (*name, n.as_str())).collect();
        assert_eq!(actual, expected);
    }

    #[test]
    fn what_an_input_lists_is_read_back() {
        let entry = |resource: &str, body, tokens| InputResource {
            scope: ListScope::Turn,
            resource: resource.to_owned(),
            body,
            tokens,
        };
        let material = Material {
            memos: Some("## 4. Context Summary\n- [not this](/x) (9 tokens)\n".to_owned()),
            resources: vec![
                entry("src/a b.rs", ResourceBody::Text("x".to_owned()), 1),
                entry("https://example.org/(1)", ResourceBody::Missing, 0),
                entry("logo.png", ResourceBody::Binary { bytes: 3 }, 0),
            ],
            ..Material::default()
        };
        check(
            &render(&material),
            &[
                ("src/a b.rs", "1"),
                ("https://example.org/(1)", "missing"),
                ("logo.png", "binary"),
            ],
        );
    }

    #[test]
    fn an_input_of_another_form_lists_nothing() {
        check("", &[]);
        check("# Anything\n- [a](/a) (1 tokens)\n", &[]);
        check("## 4. Context Summary\n- [a] (x\n- a (1 tokens)\n", &[]);
        check("````\n## 4. Context Summary\n- [a](/a) (1 tokens)\n", &[]);
    }
}
