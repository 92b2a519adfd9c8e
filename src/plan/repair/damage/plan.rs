//! A plan that is built by the rule and damaged as models damage them.

use super::corpus::{Corpus, Dice};
use crate::plan::repair::strict::Deed;
use crate::text::fence::{fence_for, longest_run};

/// A part of a plan.
enum Part {
    /// Text as it is.
    Text(String),
    /// A block.
    Block(Block),
}

/// A block with fences that may be wrong.
#[derive(Clone)]
struct Block {
    /// What the block holds.
    content: String,
    /// The language.
    info: String,
    /// The opener's length.
    open: usize,
    /// How often the opener stands there.
    openers: usize,
    /// Whether the closer stands behind the last line.
    glued: bool,
    /// The closer's line without its end; none if it is missing.
    close: Option<String>,
    /// Blanks before every line, or before the fences alone.
    indent: [&'static str; 2],
}

/// How fences are damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Damage {
    /// The outer fence is as long as the inner ones.
    Equal,
    /// The closer is missing.
    Missing,
    /// The closer is too long.
    Longer,
    /// The closer is too short.
    Shorter,
    /// Text stands behind the closer.
    Trailing,
    /// One more closer follows.
    Surplus,
    /// The whole block is indented.
    Indented,
    /// The fences alone are indented.
    Askew,
    /// A fence stands around the whole plan.
    Wrapped,
    /// Words stand before the title.
    Preamble,
    /// The label follows the list without a blank line.
    Glued,
    /// The lines end with `\r\n`.
    Crlf,
    /// The last line has no end.
    Cut,
    /// The closer stands behind the last line.
    GluedCloser,
    /// A blank that is none stands in front of the closer.
    NoBreak,
    /// The closer has the other character.
    OtherMark,
    /// The closer has two characters.
    Two,
    /// The closer is escaped.
    Escaped,
    /// The opener stands twice.
    Twice,
    /// A heading stands behind the closer.
    Heading,
}

/// Every damage that looks like something else, so that it cannot be mended.
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

/// Every damage.
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

/// A plan and what it means.
pub(super) struct DamagedPlan {
    /// Its parts.
    parts: Vec<Part>,
    /// What it means.
    pub deeds: Vec<Deed>,
}

/// The text above the actions.
const HEADER: &str = "# Improve the notes\n- **Status:** Green 🟢\n- **DamagedPlan Type:** Implementation\n- **Agent:** Developer\n\n## Rationale\n````text\n### 1. Synthesis\nAll went well.\n````\n\n## Action Plan\n";

impl DamagedPlan {
    /// Returns a plan of some actions.
    pub(super) fn new(corpus: &Corpus, dice: &mut Dice) -> Self {
        let mut plan = DamagedPlan {
            parts: vec![Part::Text(HEADER.to_owned())],
            deeds: Vec::new(),
        };
        for number in 0..2 + dice.below(4) {
            let path = format!("notes/file-{number}");
            match dice.below(6) {
                0 | 1 => plan.create(
                    &format!("{path}.md"),
                    "markdown",
                    corpus.documents[dice.below(corpus.documents.len())].clone(),
                ),
                2 => {
                    let (language, source) = &corpus.sources[dice.below(corpus.sources.len())];
                    plan.create(&format!("{path}.x"), language, source.clone());
                }
                3 => plan.edit(
                    &format!("{path}.md"),
                    &corpus.documents[dice.below(corpus.documents.len())],
                ),
                4 => plan.execute(),
                _ => plan.read(&format!("{path}.md")),
            }
        }

        plan
    }

    /// Adds a block by the rule.
    fn block(&mut self, info: &str, content: &str) {
        let fence = fence_for(content, 4);
        let (open, info, content) = (fence.len(), info.to_owned(), content.to_owned());
        self.parts.push(Part::Block(Block {
            content,
            info,
            open,
            openers: 1,
            glued: false,
            close: Some(fence),
            indent: ["", ""],
        }));
    }

    /// Adds an action.
    fn action(&mut self, name: &'static str, path: &str, contents: Vec<String>) {
        let item = if path == "-" {
            String::new()
        } else {
            format!(
                "- **{}:** [{path}](/{path})\n",
                if name == "READ" {
                    "Resource"
                } else {
                    "File Path"
                }
            )
        };

        self.parts.push(Part::Text(format!(
            "\n### `{name}`\n{item}- **Description:** Do it.\n"
        )));
        self.deeds.push(Deed {
            name,
            path: path.to_owned(),
            parts: contents,
        });
    }

    /// Adds a CREATE.
    fn create(&mut self, path: &str, language: &str, content: String) {
        self.action("CREATE", path, vec![content.clone()]);
        self.block(language, &content);
    }

    /// Adds an EDIT that replaces the paragraphs around a fence.
    fn edit(&mut self, path: &str, document: &str) {
        let replaced = document.replacen("words", "other words", 1) + "One more line.\n";
        self.action("EDIT", path, vec![document.to_owned(), replaced.clone()]);
        self.parts.push(Part::Text("\n`FIND:`\n".to_owned()));
        self.block("markdown", document);
        self.parts.push(Part::Text("`REPLACE:`\n".to_owned()));
        self.block("markdown", &replaced);
    }

    /// Adds an EXECUTE.
    fn execute(&mut self) {
        self.action("EXECUTE", "-", vec!["cargo test\n".to_owned()]);
        self.block("shell", "cargo test\n");
    }

    /// Adds a READ.
    fn read(&mut self, path: &str) {
        self.action("READ", path, Vec::new());
    }

    /// Changes the text around the blocks.
    pub(super) fn respell(&mut self, mut spell: impl FnMut(&str) -> String) {
        for part in &mut self.parts {
            if let Part::Text(text) = part {
                *text = spell(text);
            }
        }
    }

    /// Returns the text.
    pub(super) fn text(&self) -> String {
        self.parts.iter().map(Part::text).collect()
    }

    /// Damages blocks, or the whole, and returns the text.
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
                let chosen = dice.below(blocks.len());
                blocks[chosen].damage(damage);
            }
        }

        damages
            .iter()
            .fold(self.text(), |text, damage| damage_text(text, *damage))
    }
}

/// Damages a whole plan.
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
    /// Returns the text.
    fn text(&self) -> String {
        match self {
            Part::Text(text) => text.clone(),
            Part::Block(block) => block.text(),
        }
    }
}

impl Block {
    /// Damages the fences.
    fn damage(&mut self, damage: Damage) {
        let Some(closer) = self.close.clone() else {
            return;
        };
        match damage {
            Damage::Equal if closer.len() == self.open => {
                self.open = longest_run(&self.content, '`').max(3);
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
                    .content
                    .lines()
                    .any(|line| line.starts_with(|c: char| !c.is_whitespace())) =>
            {
                self.indent = ["  ", ""]
            }
            _ => {}
        }
    }

    /// Returns the text.
    fn text(&self) -> String {
        let [fences, lines] = self.indent;
        let indented = |line: &str| {
            if line == "\n" {
                line.to_owned()
            } else {
                format!("{lines}{line}")
            }
        };

        let content: String = self.content.split_inclusive('\n').map(indented).collect();
        let closer = self.close.as_ref().map(|close| {
            close
                .lines()
                .map(|line| format!("{fences}{line}\n"))
                .collect::<String>()
        });
        let opener = format!("{fences}{}{}\n", "`".repeat(self.open), self.info);
        let content = if self.glued {
            content.trim_end_matches('\n')
        } else {
            &content
        };

        [
            &opener.repeat(self.openers),
            content,
            &closer.unwrap_or_default(),
        ]
        .concat()
    }
}
