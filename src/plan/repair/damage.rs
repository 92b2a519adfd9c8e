//! Plans that are damaged by rule, and what must come of them.
//!
//! A plan is built from known contents, its fences are damaged as models damage them, and the
//! repaired text is read by [`super::strict`]: the actions and their bytes must be those that went in.

use super::strict::{self, Deed};
use super::{Level, repair};
use crate::text::fence::{fence_for, longest_run};

/// A small generator of numbers, the same on every machine.
pub(super) struct Dice(pub u64);

impl Dice {
    /// Returns a number below a limit.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    /// Returns one of some values.
    pub(super) fn pick<'a, T: ?Sized>(&mut self, values: &[&'a T]) -> &'a T {
        values[self.below(values.len())]
    }
}

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
}

/// Every damage.
const ALL: [Damage; 13] = {
    use Damage::{Askew, Crlf, Cut, Equal, Glued, Indented, Longer, Missing, Preamble, Shorter, Surplus, Trailing, Wrapped};
    [Equal, Missing, Longer, Shorter, Trailing, Surplus, Indented, Askew, Wrapped, Preamble, Glued, Crlf, Cut]
};

/// Contents: prose with fences, and code.
pub(super) struct Corpus {
    /// Markdown.
    pub documents: Vec<String>,
    /// Code with the name of its language.
    pub sources: Vec<(&'static str, String)>,
}

impl Corpus {
    /// Returns contents from this project's own files and from the dice.
    pub(super) fn own(dice: &mut Dice) -> Self {
        let documents = [include_str!("../../../docs/formats/repair.md")];
        let sources = [include_str!("step.rs"), include_str!("../../text/fence.rs"), include_str!("../mod.rs"), include_str!("damage.rs")];
        let mut corpus = Corpus { documents: Vec::new(), sources: Vec::new() };
        corpus.documents.extend(documents.iter().flat_map(|text| sections(text)));
        corpus.documents.extend((0..60).map(|_| document(dice)));
        corpus.sources.extend(sources.iter().flat_map(|text| chunks(text, 25)).map(|text| ("rust", text)));
        corpus.sources.push(("python", "def f():\n    \"\"\"Say it.\n\n    ```\n    f()\n    ```\n    \"\"\"\n".into()));
        corpus.sources.push(("sh", "cat > note.md <<'END'\n```sh\nls\n```\nEND\n".into()));
        corpus
    }
}

/// Returns the sections of a document in which every fence is closed.
pub(super) fn sections(text: &str) -> Vec<String> {
    let whole = text.split("\n## ").map(|part| format!("## {}\n", part.trim_start_matches("## ").trim_end()));
    whole.filter(|part| part.lines().filter(|l| l.trim_start().starts_with("```")).count() % 2 == 0).collect()
}

/// Returns a text cut into pieces of so many lines.
pub(super) fn chunks(text: &str, lines: usize) -> Vec<String> {
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    all.chunks(lines).map(|piece| format!("{}\n", piece.concat().trim_end())).collect()
}

/// Returns a document with prose, lists and fences.
fn document(dice: &mut Dice) -> String {
    let mut text = String::from("# Notes\n\n");
    for _ in 0..2 + dice.below(5) {
        text.push_str(&match dice.below(7) {
            0 => "Some words on the matter.\nAnd a second line.\n".to_owned(),
            1 => format!("```{}\nmake all\n```\n", dice.pick(&["sh", "rust", "json", "python", "text"])),
            2 => "```\nplain output\n\nmore of it\n```\n".to_owned(),
            3 => "1. first\n   ```sh\n   ls -l\n   ```\n2. second\n".to_owned(),
            4 => "## A part\n\n- one\n- two with `code`\n".to_owned(),
            5 => "| a | b |\n|---|---|\n| 1 | 2 |\n\n---\n".to_owned(),
            _ => "~~~\ntildes\n~~~\n".to_owned(),
        });
        text.push('\n');
    }
    if dice.below(2) == 0 {
        text.push_str("The end.\n");
    } else {
        text.truncate(text.trim_end().len() + 1);
    }
    text
}

/// A plan and what it means.
pub(super) struct Plan {
    /// Its parts.
    parts: Vec<Part>,
    /// What it means.
    pub deeds: Vec<Deed>,
}

/// The text above the actions.
const HEADER: &str = "# Improve the notes\n- **Status:** Green 🟢\n- **Plan Type:** Implementation\n- **Agent:** Developer\n\n## Rationale\n````text\n### 1. Synthesis\nAll went well.\n````\n\n## Action Plan\n";

impl Plan {
    /// Returns a plan of some actions.
    pub(super) fn new(corpus: &Corpus, dice: &mut Dice) -> Self {
        let mut plan = Plan { parts: vec![Part::Text(HEADER.to_owned())], deeds: Vec::new() };
        for number in 0..2 + dice.below(4) {
            let path = format!("notes/file-{number}");
            match dice.below(6) {
                0 | 1 => plan.create(&format!("{path}.md"), "markdown", corpus.documents[dice.below(corpus.documents.len())].clone()),
                2 => {
                    let (language, source) = &corpus.sources[dice.below(corpus.sources.len())];
                    plan.create(&format!("{path}.x"), language, source.clone());
                }
                3 => plan.edit(&format!("{path}.md"), &corpus.documents[dice.below(corpus.documents.len())]),
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
        self.parts.push(Part::Block(Block { content, info, open, close: Some(fence), indent: ["", ""] }));
    }

    /// Adds an action.
    fn action(&mut self, name: &'static str, path: &str, contents: Vec<String>) {
        let item = if path == "-" {
            String::new()
        } else {
            format!("- **{}:** [{path}](/{path})\n", if name == "READ" { "Resource" } else { "File Path" })
        };
        self.parts.push(Part::Text(format!("\n### `{name}`\n{item}- **Description:** Do it.\n")));
        self.deeds.push(Deed { name, path: path.to_owned(), parts: contents });
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
            let blocks = self.parts.iter_mut().filter_map(|part| if let Part::Block(block) = part { Some(block) } else { None });
            let mut blocks: Vec<_> = blocks.collect();
            if !blocks.is_empty() {
                let chosen = dice.below(blocks.len());
                blocks[chosen].damage(damage);
            }
        }
        damages.iter().fold(self.text(), |text, damage| damage_text(text, *damage))
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
        let Some(closer) = self.close.clone() else { return };
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
            Damage::Indented => self.indent = ["  ", "  "],
            Damage::Askew if self.content.lines().any(|line| line.starts_with(|c: char| !c.is_whitespace())) => self.indent = ["  ", ""],
            _ => {}
        }
    }

    /// Returns the text.
    fn text(&self) -> String {
        let [fences, lines] = self.indent;
        let indented = |line: &str| if line == "\n" { line.to_owned() } else { format!("{lines}{line}") };
        let content: String = self.content.split_inclusive('\n').map(indented).collect();
        let closer = self.close.as_ref().map(|close| close.lines().map(|line| format!("{fences}{line}\n")).collect::<String>());
        format!("{fences}{}{}\n{content}{}", "`".repeat(self.open), self.info, closer.unwrap_or_default())
    }
}

/// What came of damaged plans.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// How many there were.
    pub all: usize,
    /// How many read exactly as they were meant.
    pub exact: usize,
    /// Those that did not.
    pub wrong: Vec<Wrong>,
}

/// A plan that does not read as it was meant.
#[derive(Debug)]
pub(super) struct Wrong {
    /// What was done to it.
    pub damages: Vec<Damage>,
    /// The damaged text.
    pub text: String,
    /// The repair's level.
    pub level: Level,
    /// It is a plan, and the repair was sure of it.
    pub silent: bool,
}

/// Damages and repairs so many plans.
pub(super) fn tally(corpus: &Corpus, dice: &mut Dice, rounds: usize) -> Tally {
    let mut tally = Tally::default();
    for round in 0..rounds {
        let mut plan = Plan::new(corpus, dice);
        let mut damages = vec![ALL[round % ALL.len()]];
        damages.extend((0..dice.below(2) * dice.below(4)).map(|_| ALL[dice.below(ALL.len())]));
        let text = plan.damaged(&damages, dice);
        let repaired = repair(&text);
        tally.all += 1;
        if means(&repaired.text, &plan.deeds) {
            tally.exact += 1;
        } else {
            let silent = repaired.level < Level::Doubtful && strict::read(&repaired.text).is_ok();
            tally.wrong.push(Wrong { damages, text, level: repaired.level, silent });
        }
    }
    tally
}

/// Returns whether a text means some actions, line ends aside.
fn means(text: &str, deeds: &[Deed]) -> bool {
    let plain = |deeds: &[Deed]| -> Vec<Deed> {
        let lf = |part: &String| part.replace("\r\n", "\n");
        deeds.iter().map(|deed| Deed { parts: deed.parts.iter().map(lf).collect(), ..deed.clone() }).collect()
    };
    strict::read(text).is_ok_and(|read| plain(&read) == plain(deeds))
}

#[test]
fn damaged_plans_come_back_as_they_were_meant_and_never_silently_otherwise() {
    let mut dice = Dice(0x7EDD_9000_0000_0001);
    let corpus = Corpus::own(&mut dice);
    let tally = tally(&corpus, &mut dice, 520);
    let silent: Vec<_> = tally.wrong.iter().filter(|wrong| wrong.silent).collect();
    assert!(silent.is_empty(), "{} silently wrong: {:?}, {:?}\n{}", silent.len(), silent[0].damages, silent[0].level, silent[0].text);
    assert!(tally.exact * 100 >= tally.all * 97, "{} of {} exact", tally.exact, tally.all);
}

#[test]
fn plans_by_the_rule_come_back_byte_for_byte() {
    let mut dice = Dice(0x7EDD_9000_0000_0002);
    let corpus = Corpus::own(&mut dice);
    for _ in 0..300 {
        let plan = Plan::new(&corpus, &mut dice);
        let text = plan.text();
        let repaired = repair(&text);
        assert_eq!((repaired.text.as_str(), repaired.level), (text.as_str(), Level::Clean));
        assert!(means(&text, &plan.deeds), "{:?}", strict::read(&text));
    }
}
