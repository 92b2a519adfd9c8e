//! Contents of damaged plans, and a random number generator.

/// Random number generator, reproducible on every machine.
pub(super) struct Dice(pub u64);

impl Dice {
    pub(super) fn roll(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits fit") % limit
    }

    pub(super) fn pick<'a, T: ?Sized>(&mut self, values: &[&'a T]) -> &'a T {
        values[self.roll(values.len())]
    }
}

/// A document whose sections are contents.
const DOCUMENT: &str = include_str!("../../../../fixtures/damage/format.md");
/// Source files whose pieces are contents.
const SOURCES: [&str; 4] = [
    include_str!("../../../../fixtures/damage/step.rs"),
    include_str!("../../../../fixtures/damage/fence.rs"),
    include_str!("../../../../fixtures/damage/plan.rs"),
    include_str!("../../../../fixtures/damage/damage.rs"),
];

pub(super) struct Corpus {
    pub documents: Vec<String>,
    /// Code with the name of its language.
    pub sources: Vec<(&'static str, String)>,
}

impl Corpus {
    /// Returns contents from `fixtures/damage` and random ones. The fixtures must not change: with
    /// other contents, the same seed would generate other plans.
    pub(super) fn own(dice: &mut Dice) -> Self {
        let mut corpus = Corpus {
            documents: Vec::new(),
            sources: Vec::new(),
        };
        corpus.documents.extend(sections(DOCUMENT));
        corpus.documents.extend((0..60).map(|_| document(dice)));
        corpus.sources.extend(
            SOURCES
                .iter()
                .flat_map(|text| chunks(text, 25))
                .map(|text| ("rust", text)),
        );
        corpus.sources.push((
            "python",
            "def f():\n    \"\"\"Say it.\n\n    ```\n    f()\n    ```\n    \"\"\"\n".into(),
        ));
        corpus
            .sources
            .push(("sh", "cat > note.md <<'END'\n```sh\nls\n```\nEND\n".into()));

        corpus
    }
}

/// Returns the sections of a document in which every fence is closed.
pub(super) fn sections(text: &str) -> Vec<String> {
    let sections = text
        .split("\n## ")
        .map(|part| format!("## {}\n", part.trim_start_matches("## ").trim_end()));
    sections
        .filter(|part| {
            part.lines()
                .filter(|l| l.trim_start().starts_with("```"))
                .count()
                % 2
                == 0
        })
        .collect()
}

pub(super) fn chunks(text: &str, lines: usize) -> Vec<String> {
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    all.chunks(lines)
        .map(|piece| format!("{}\n", piece.concat().trim_end()))
        .collect()
}

fn document(dice: &mut Dice) -> String {
    let mut text = String::from("# Notes\n\n");
    for _ in 0..2 + dice.roll(5) {
        text.push_str(&match dice.roll(7) {
            0 => "Some words on the matter.\nAnd a second line.\n".to_owned(),
            1 => format!(
                "```{}\nmake all\n```\n",
                dice.pick(&["sh", "rust", "json", "python", "text"])
            ),
            2 => "```\nplain output\n\nmore of it\n```\n".to_owned(),
            3 => "1. first\n   ```sh\n   ls -l\n   ```\n2. second\n".to_owned(),
            4 => "## A part\n\n- one\n- two with `code`\n".to_owned(),
            5 => "| a | b |\n|---|---|\n| 1 | 2 |\n\n---\n".to_owned(),
            _ => "~~~\ntildes\n~~~\n".to_owned(),
        });
        text.push('\n');
    }

    if dice.roll(2) == 0 {
        text.push_str("The end.\n");
    } else {
        text.truncate(text.trim_end().len() + 1);
    }

    text
}
