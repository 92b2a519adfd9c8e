//! Builds correct plans and damages them as models do.

use super::corpus::{Corpus, Dice};
use crate::text::fence::{fence_for, longest_run};

enum Part {
    Text(String),
    Block(Block),
}

/// A block whose fences can be wrong.
#[derive(Clone)]
struct Block {
    text: String,
    info: String,
    open: usize,
    /// Number of opening fences.
    openers: usize,
    /// Whether the closing fence follows the last line without a line break.
    glued: bool,
    /// The closing fence's line without its ending; `None` if missing.
    close: Option<String>,
    /// Indentation of the fences, and of the content.
    indent: [&'static str; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Damage {
    /// The outer fence is as long as the inner ones.
    Equal,
    Missing,
    Longer,
    Shorter,
    Trailing,
    Surplus,
    Indented,
    Askew,
    Wrapped,
    Preamble,
    Glued,
    Crlf,
    Cut,
    GluedCloser,
    NoBreak,
    OtherMark,
    Two,
    Escaped,
    Twice,
    Heading,
}

/// Damage that looks like something else and so cannot be repaired.
pub(super) const SLIPS: [Damage; 7] = {
    use Damage::{Escaped, GluedCloser, Heading, NoBreak, OtherMark, Twice, Two};
    [
        GluedCloser,
        NoBreak,
        OtherMark,
        Two,
        Escaped,
        Twice,
        Heading,
    ]
};

pub(super) const ALL: [Damage; 13] = {
    use Damage::{
        Askew, Crlf, Cut, Equal, Glued, Indented, Longer, Missing, Preamble, Shorter, Surplus,
        Trailing, Wrapped,
    };
    [
        Equal, Missing, Longer, Shorter, Trailing, Surplus, Indented, Askew, Wrapped, Preamble,
        Glued, Crlf, Cut,
    ]
};

pub(super) struct DamagedPlan {
    parts: Vec<Part>,
    /// The intended actions, each as [`crate::plan::samples::describe`] puts it.
    pub actions: Vec<String>,
}

const HEADER: &str = "# Improve the notes\n- **Status:** Green 🟢\n- **Plan Type:** Implementation\n- **Agent:** Developer\n\n## Rationale\n````text\n### 1. Synthesis\nAll went well.\n````\n\n## Action Plan\n";

impl DamagedPlan {
    pub(super) fn new(corpus: &Corpus, dice: &mut Dice) -> Self {
        let mut plan = DamagedPlan {
            parts: vec![Part::Text(HEADER.to_owned())],
            actions: Vec::new(),
        };
        for number in 0..2 + dice.roll(4) {
            let path = format!("notes/file-{number}");
            match dice.roll(6) {
                0 | 1 => plan.create(
                    &format!("{path}.md"),
                    "markdown",
                    &corpus.documents[dice.roll(corpus.documents.len())],
                ),
                2 => {
                    let (language, source) = &corpus.sources[dice.roll(corpus.sources.len())];
                    plan.create(&format!("{path}.x"), language, source);
                }
                3 => plan.edit(
                    &format!("{path}.md"),
                    &corpus.documents[dice.roll(corpus.documents.len())],
                ),
                4 => plan.execute(),
                _ => plan.read(&format!("{path}.md")),
            }
        }

        plan
    }

    fn block(&mut self, info: &str, text: &str) {
        let fence = fence_for(text, 4);
        let (open, info, text) = (fence.len(), info.to_owned(), text.to_owned());
        self.parts.push(Part::Block(Block {
            text,
            info,
            open,
            openers: 1,
            glued: false,
            close: Some(fence),
            indent: ["", ""],
        }));
    }

    fn action(&mut self, name: &str, target: &str, meaning: String) {
        self.parts.push(Part::Text(format!(
            "\n### `{name}`\n{target}- **Description:** Do it.\n"
        )));
        self.actions.push(format!("{name} {meaning}"));
    }

    fn create(&mut self, path: &str, language: &str, text: &str) {
        let meaning = format!("{path} {text:?} {language}");
        self.action("CREATE", &field("File Path", path), meaning);
        self.block(language, text);
    }

    fn edit(&mut self, path: &str, document: &str) {
        let replaced = document.replacen("words", "other words", 1) + "One more line.\n";
        let meaning = format!("{path} {:?}", [(document, replaced.as_str())]);
        self.action("EDIT", &field("File Path", path), meaning);
        self.parts.push(Part::Text("\n`FIND:`\n".to_owned()));
        self.block("markdown", document);
        self.parts.push(Part::Text("`REPLACE:`\n".to_owned()));
        self.block("markdown", &replaced);
    }

    fn execute(&mut self) {
        let command = "cargo test\n";
        self.action("EXECUTE", "", format!("{command:?}"));
        self.block("shell", command);
    }

    fn read(&mut self, path: &str) {
        self.action("READ", &field("Resource", path), path.to_owned());
    }

    pub(super) fn respell(&mut self, mut spell: impl FnMut(&str) -> String) {
        for part in &mut self.parts {
            if let Part::Text(text) = part {
                *text = spell(text);
            }
        }
    }

    pub(super) fn text(&self) -> String {
        self.parts.iter().map(Part::text).collect()
    }

    pub(super) fn damaged(&mut self, damages: &[Damage], dice: &mut Dice) -> String {
        let mut damages = damages.to_vec();
        damages.sort();
        damages.dedup();
        for &damage in &damages {
            let blocks = self.parts.iter_mut().filter_map(|part| {
                if let Part::Block(block) = part {
                    Some(block)
                } else {
                    None
                }
            });

            let mut blocks: Vec<_> = blocks.collect();
            if !blocks.is_empty() {
                let chosen = dice.roll(blocks.len());
                blocks[chosen].damage(damage);
            }
        }

        damages
            .iter()
            .fold(self.text(), |text, damage| damage_text(text, *damage))
    }
}

fn field(key: &str, path: &str) -> String {
    format!("- **{key}:** [{path}](/{path})\n")
}

fn damage_text(text: String, damage: Damage) -> String {
    match damage {
        Damage::Wrapped => format!("```markdown\n{text}```\n"),
        Damage::Preamble => format!("Here is the plan:\n\n{text}"),
        Damage::Glued => text.replace("Do it.\n\n`FIND:`", "Do it.\n`FIND:`"),
        Damage::Cut => text.trim_end().to_owned(),
        Damage::Crlf => text.replace('\n', "\r\n"),
        _ => text,
    }
}

impl Part {
    fn text(&self) -> String {
        match self {
            Part::Text(text) => text.clone(),
            Part::Block(block) => block.text(),
        }
    }
}

impl Block {
    fn damage(&mut self, damage: Damage) {
        let Some(closer) = self.close.clone() else {
            return;
        };
        match damage {
            Damage::Equal if closer.len() == self.open => {
                self.open = longest_run(&self.text, '`').max(3);
                self.close = Some("`".repeat(self.open));
            }
            Damage::Missing => self.close = None,
            Damage::Longer => self.close = Some(format!("{closer}``")),
            Damage::Shorter => self.close = Some("`".repeat(self.open.max(4) - 1)),
            Damage::Trailing => self.close = Some(format!("{closer} (end of file)")),
            Damage::Surplus => self.close = Some(format!("{closer}\n{closer}")),
            Damage::GluedCloser => self.glued = true,
            Damage::NoBreak => self.close = Some(format!("\u{a0}{closer}")),
            Damage::OtherMark => self.close = Some("~".repeat(self.open)),
            Damage::Two => self.close = Some("``".to_owned()),
            Damage::Escaped => self.close = Some(format!("\\{closer}")),
            Damage::Twice => self.openers = 2,
            Damage::Heading => self.close = Some(format!("{closer}### `READ`")),
            Damage::Indented => self.indent = ["  ", "  "],
            Damage::Askew
                if self
                    .text
                    .lines()
                    .any(|line| line.starts_with(|c: char| !c.is_whitespace())) =>
            {
                self.indent = ["  ", ""]
            }
            _ => {}
        }
    }

    fn text(&self) -> String {
        let [fences, lines] = self.indent;
        let indented = |line: &str| {
            if line == "\n" {
                line.to_owned()
            } else {
                format!("{lines}{line}")
            }
        };

        let text: String = self.text.split_inclusive('\n').map(indented).collect();
        let closer = self.close.as_ref().map(|close| {
            close
                .lines()
                .map(|line| format!("{fences}{line}\n"))
                .collect::<String>()
        });
        let opener = format!("{fences}{}{}\n", "`".repeat(self.open), self.info);
        let text = if self.glued {
            text.trim_end_matches('\n')
        } else {
            &text
        };

        [
            &opener.repeat(self.openers),
            text,
            &closer.unwrap_or_default(),
        ]
        .concat()
    }
}
