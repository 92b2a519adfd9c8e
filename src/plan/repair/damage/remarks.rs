//! Complete blocks followed by remarks: text and further blocks. Remarks never become part of the
//! block silently.

use super::corpus::Dice;
use crate::plan::reading::{self, Reading};
use crate::plan::repair::Level;

const HEAD: &str =
    "# Do it\n- **Status:** Green 🟢\n\n## Rationale\n````text\nIt is wanted.\n````\n\n";
/// Text in front of a further block.
const INTRODUCTIONS: [&str; 12] = [
    "To undo:",
    "Run it with:",
    "Don't forget:",
    "That's it. Then run",
    "If it fails, don't worry:",
    "You can check with `ls`:",
    "- first\n- then",
    "Or, as an alternative (\"safer\"):",
    "Note: it's `'quoted'` and \"so\".",
    "/* a remark */",
    "**Usage**\n\nCall it like this:",
    "It should print:",
];
/// Content of further blocks.
const BLOCKS: [&str; 8] = [
    "rm -f README.md\n",
    "python x.py\n",
    "git reset --hard\nrm -rf build\n",
    "OK\n",
    "x = 1\n",
    "echo 'it'\n",
    "cat <<EOF\nx\nEOF\n",
    "\"\"\"\n*/\n-->\n",
];
/// Complete scripts and programs: file extension, language, content.
const CODE: [(&str, &str, &str); 14] = [
    ("", "sh", "ls\n"),
    ("", "", "cargo test --all\n"),
    ("", "console", "echo \"it is done\"\n"),
    ("", "bash", "cat > a.txt <<EOF\nhello\nEOF\n"),
    ("", "text", "# don't stop\nset -e\n./run.sh\n"),
    (
        "py",
        "python",
        "def f():\n    \"\"\"Say \"it\".\"\"\"\n    return 'it'\n",
    ),
    (
        "rs",
        "rust",
        "/* a */\nfn f<'a>(x: &'a str) -> char {\n    '\"'\n}\n",
    ),
    ("js", "", "const glob = \"src/**/*.js\"; // don't\n"),
    ("json", "json", "{\n  \"a\": 1\n}\n"),
    ("toml", "toml", "[a]\nb = 1\n"),
    ("yml", "yaml", "run: |\n  ls\n"),
    ("html", "html", "<p>It's <!-- so --></p>\n"),
    ("foo", "foo", "whatever\n"),
    ("", "python", "print(1)\n"),
];

struct Remarked {
    text: String,
    /// The block, from its opening to its closing fence.
    block: String,
}

/// Returns a plan of one action whose block has remarks after it.
fn remarked(dice: &mut Dice) -> Remarked {
    let mark = dice.pick(&["`", "`", "~"]);
    let fence = mark.repeat(3 + dice.roll(3));
    let (ending, info, code) = CODE[dice.roll(CODE.len())];
    let block = format!("{fence}{info}\n{code}{fence}\n");
    let remarks = remarks(dice, mark, fence.len());
    let suffix = dice.pick(&["", "\n### `READ`\n- **Resource:** [a](/a)\n"]);
    let (above, between) = action(dice, ending, info);
    let extra = match between {
        Some(next) => format!("{next}{fence}{info}\n{code}x\n{fence}\n"),
        None => String::new(),
    };

    let text = format!("{HEAD}{above}{block}{remarks}{extra}{suffix}");
    Remarked { text, block }
}

/// Returns the start of an action, and the part after its first block if it has two.
fn action(dice: &mut Dice, ending: &str, info: &str) -> (String, Option<&'static str>) {
    let path = |name: &str| format!("- **File Path:** [{name}](/{name})\n- **Description:** d\n");
    let plan = "## Action Plan\n\n";
    if ending.is_empty() && info != "python" {
        return match dice.roll(4) {
            0 => (
                "## Memos\n".to_owned(),
                Some("\n## Action Plan\n\n### `EXECUTE`\n- **Description:** d\n"),
            ),
            _ => (format!("{plan}### `EXECUTE`\n- **Description:** d\n"), None),
        };
    }

    let name = if ending.is_empty() {
        "run".to_owned()
    } else {
        format!("src/x.{ending}")
    };
    match dice.roll(3) {
        0 => (
            format!("{plan}### `EDIT`\n{}\n`FIND:`\n", path(&name)),
            Some("`REPLACE:`\n"),
        ),
        _ => (format!("{plan}### `CREATE`\n{}", path(&name)), None),
    }
}

fn remarks(dice: &mut Dice, mark: &str, len: usize) -> String {
    let mut text = String::new();
    for number in 0..1 + dice.roll(3) {
        if number > 0 || dice.roll(8) > 0 {
            let blank = dice.pick(&["", "\n"]);
            let intro = INTRODUCTIONS[dice.roll(INTRODUCTIONS.len())];
            text.push_str(&format!("{blank}{intro}\n{blank}"));
        }

        let fence = mark.repeat(if dice.roll(5) > 0 {
            len
        } else {
            3 + dice.roll(len - 1)
        });

        let info = dice.pick(&["", "", "", "shell", "python", "text"]);
        let block = BLOCKS[dice.roll(BLOCKS.len())];
        text.push_str(&format!("{fence}{info}\n{block}{fence}\n"));
    }

    text.push_str(dice.pick(&["", "", "\nThat's all, it's fine.\n"]));
    text
}

#[test]
fn rp15_remarks_behind_a_whole_block_are_never_a_part_of_it() {
    let mut dice = Dice(0x7EDD_9000_0000_0003);
    for _ in 0..300 {
        let Remarked { text, block } = remarked(&mut dice);
        let Reading {
            repaired,
            diagnostics,
            ..
        } = reading::read(&text);
        assert!(
            !diagnostics.is_empty() && repaired.text.contains(&block),
            "{:?}: {:?}\n{text}\n=> {}",
            repaired.level,
            repaired.notes,
            repaired.text
        );
    }
}

#[test]
fn rp15_in_markdown_they_are_content_and_in_other_prose_in_doubt() {
    let block = |ending: &str, info: &str| {
        format!(
            "{HEAD}## Action Plan\n\n### `CREATE`\n- **File Path:** [a{ending}](/a{ending})\n```{info}\nx\n```\ny\n```\nz\n```\n"
        )
    };
    for ending in [".md", ".markdown", ".mdx", ".qmd"] {
        let read = reading::read(&block(ending, "markdown"));
        assert_eq!(
            (read.repaired.level, read.diagnostics.len()),
            (Level::Refenced, 0),
            "{ending}"
        );
    }

    for (ending, info) in [
        (".txt", "text"),
        (".rst", ""),
        ("", ""),
        ("", "text"),
        (".foo", ""),
    ] {
        let read = reading::read(&block(ending, info));
        assert_eq!(read.repaired.level, Level::Doubtful, "{ending} {info}");
    }
}
