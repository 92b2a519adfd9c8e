//! The program accepts the commands and configurations that the documentation shows.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::rc::Rc;

use teddy::config::settings::Settings;
use teddy::model::acting::open::open_acting;
use teddy::model::model_env::ModelEnv;
use teddy::model::open::open;

use crate::plans::{create, execute, plan};
use crate::support::TestRepo;

fn document(path: &str) -> String {
    std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn blocks(text: &str, language: &str) -> Vec<String> {
    let opening = format!("```{language}\n");
    text.split(&opening)
        .skip(1)
        .map(|rest| rest.split_once("\n```").unwrap().0.to_owned())
        .collect()
}

/// Opens each model of a configuration with a key in every variable, and returns the names. The
/// selected model must be among them.
fn models(yaml: &str) -> Vec<String> {
    let settings: Settings =
        serde_yaml::from_str(yaml).unwrap_or_else(|error| panic!("{error} in\n{yaml}"));
    let outside = ModelEnv {
        variable: Rc::new(|name| name.ends_with("_KEY").then(|| "hunter2-hunter2".to_owned())),
        ..ModelEnv::default()
    };
    for (name, entry) in &settings.models {
        let opened = entry.check(name).and_then(|()| {
            if entry.kind.is_acting() {
                return open_acting(name, entry, &outside).map(drop);
            }
            open(name, entry, &outside).map(drop)
        });
        assert!(opened.is_ok(), "{name}: {:?} in\n{yaml}", opened.err());
    }
    let used = settings
        .model
        .unwrap_or_else(|| panic!("no model is in use in\n{yaml}"));
    assert!(
        settings.models.contains_key(&used),
        "`{used}` is none of the models in\n{yaml}"
    );
    settings.models.into_keys().collect()
}

#[test]
fn every_set_up_of_a_model_can_be_copied() {
    let set_up: Vec<String> = blocks(&document("docs/models.md"), "yaml")
        .iter()
        .flat_map(|block| models(block))
        .collect();
    assert_eq!(
        set_up,
        [
            "gpt", "sonnet", "router", "gemini", "local", "local", "claude", "codex", "opencode",
            "llm", "claude", "mine", "other"
        ]
    );
}

#[test]
fn the_setup_of_llm_works_with_a_key_in_the_environment() {
    let set_up = blocks(&document("docs/models.md"), "yaml");
    let llm = set_up.iter().find(|block| block.starts_with("model: llm"));
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.configure(llm.unwrap());
    let bin = repo.beside("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let answer = plan("Make b", &[create("b.txt", "b\n")]);
    std::fs::write(bin.join("answer.md"), answer).unwrap();
    std::fs::write(
        bin.join("llm"),
        "#!/bin/sh\ntest \"$OPENAI_API_KEY $*\" = 'sk-mine prompt --no-log' && cat > /dev/null && cat \"${0%/*}/answer.md\"\n",
    )
    .unwrap();
    std::fs::set_permissions(bin.join("llm"), Permissions::from_mode(0o755)).unwrap();

    let path = format!(
        "{}:{}",
        bin.display(),
        teddy::host::env::var("PATH").unwrap()
    );
    let mut command = repo.teddy_command(&["start", "make b", "-y", "--max-turns", "1"]);
    command.env("PATH", path).env("OPENAI_API_KEY", "sk-mine");
    assert_eq!(repo.reads(command, "").code, 0);
    assert_eq!(repo.read("b.txt"), "b\n");
}

#[test]
fn every_example_of_a_configuration_can_be_copied() {
    let examples = blocks(&document("docs/formats/config.md"), "yaml");
    assert_eq!(
        examples
            .iter()
            .map(|example| models(example).len())
            .collect::<Vec<_>>(),
        [3]
    );
}

#[test]
fn what_init_writes_can_be_uncommented() {
    let text = document("prompts/config.yaml");
    let uncommented = |line: &str| {
        line.strip_prefix("# ")
            .filter(|rest| rest.starts_with(|c: char| c.is_lowercase() || c == ' '))
            .map(str::to_owned)
    };
    let own: Vec<String> = text
        .lines()
        .skip_while(|line| !line.contains("model:"))
        .take_while(|line| !line.is_empty())
        .filter_map(uncommented)
        .collect();
    let own: String = own
        .iter()
        .map(|line| line.strip_prefix("  ").unwrap_or(line).to_owned() + "\n")
        .collect();
    assert_eq!(models(&own), ["claude", "gpt", "local", "sonnet"]);
    let theirs: String = text
        .lines()
        .skip_while(|line| !line.is_empty())
        .filter_map(uncommented)
        .map(|line| line + "\n")
        .collect();
    serde_yaml::from_str::<Settings>(&theirs)
        .unwrap_or_else(|error| panic!("{error} in\n{theirs}"));
}

#[test]
fn what_init_writes_takes_effect_without_trust_unless_it_says_otherwise() {
    let text = document("prompts/config.yaml");
    let lines = text.lines().skip_while(|line| !line.is_empty());
    let harmless: String = lines
        .take_while(|line| !line.contains("[trust]"))
        .filter_map(|line| line.strip_prefix("# "))
        .map(|line| format!("{line}\n"))
        .collect();
    let repo = TestRepo::new().file(".teddy/config.yaml", harmless);
    let project = repo.workflow().open().unwrap();
    assert_eq!(project.ignored, Vec::<String>::new());
}

#[test]
fn every_setting_of_a_model_is_in_the_table() {
    let error = serde_yaml::from_str::<teddy::config::settings::ModelSettings>("zz: 1")
        .unwrap_err()
        .to_string();
    let known: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
    assert!(known.len() > 15, "{error}");
    let table = document("docs/models.md");
    let missing: Vec<&&str> = known
        .iter()
        .filter(|name| !table.contains(&format!("| `{name}` |")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Returns the first column of the table below a heading.
fn table(page: &str, heading: &str) -> Vec<String> {
    let text = document(page);
    let (_, below) = text
        .split_once(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("{page} has no `{heading}`"));
    let rows = below.lines().skip_while(|line| !line.starts_with('|'));
    rows.take_while(|line| line.starts_with('|'))
        .skip(2)
        .map(|row| row.split(" | ").next().unwrap()[2..].to_owned())
        .collect()
}

fn between(text: &str, mark: char) -> Vec<&str> {
    text.split(mark).skip(1).step_by(2).collect()
}

/// Appends the text of every source file below a directory.
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn what_safety_quotes_is_what_the_program_says() {
    let mut source = String::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut source,
    );
    let rows = table("docs/safety.md", "## When something went wrong");
    let quoted: Vec<&str> = rows.iter().flat_map(|row| between(row, '"')).collect();
    assert!(quoted.len() >= 7, "{quoted:?}");
    for words in quoted {
        // The program fills in the parts in backquotes and the ellipses.
        let parts = words.split("...").flat_map(|part| part.split("`x`"));
        for part in parts.map(|part| part.trim_matches([' ', ':'])) {
            assert!(source.contains(part), "nothing says `{part}`");
        }
    }
}

#[test]
fn every_file_of_ours_in_the_git_directory_is_in_the_table_of_safety() {
    let repo = TestRepo::new()
        .file("a.txt", "a\n")
        .file(".gitignore", "made\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    let actions = [
        create("made", "x\n"),
        execute("git commit --allow-empty -qm new"),
    ];
    repo.run_plan(&plan("Make", &actions));
    repo.run_plan(&plan("Change", &[execute("echo b > a.txt")]));
    repo.done(&["log"]);
    repo.configure("model: manual:-\n");
    repo.teddy(&["plan", "-m", "go"]);
    repo.teddy(&["change", "proposal", "held", "go"]);

    let documented: Vec<String> = table("docs/safety.md", "## What is in `.git/teddy`")
        .iter()
        .flat_map(|row| between(row, '`'))
        .map(|name| name.split('/').next().unwrap().to_owned())
        .collect();
    let found = std::fs::read_dir(repo.path().join(".git/teddy")).unwrap();
    let found: Vec<String> = found
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(found.len() > 10, "{found:?}");
    for name in found {
        assert!(documented.contains(&name), "`{name}` is not in the table");
    }
}

/// Outside of a repository a valid command fails without any effect, and an invalid one exits with
/// code 2.
#[track_caller]
fn check_exists(outside: &TestRepo, words: &str) {
    let args = shlex::split(words).unwrap();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let out = outside.teddy_in(&outside.beside("home"), &args);
    assert!(out.code != 2, "{words}: {out}");
}

/// Commands in the text and the tables of a page. A command with a line end in it is not one.
fn inline_commands(page: &str) -> Vec<&str> {
    let mut is_code = false;
    let prose = page.lines().filter(|line| {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    let spans = prose.flat_map(|line| between(line, '`'));
    spans
        .filter_map(|span| span.strip_prefix("teddy "))
        .collect()
}

#[test]
fn the_commands_and_configurations_of_agents_can_be_copied() {
    let page = document("docs/agents.md");
    let outside = TestRepo::new();
    let shell = blocks(&page, "sh");
    let lines: Vec<&str> = shell.iter().flat_map(|block| block.lines()).collect();
    for line in &lines {
        let words = line.strip_prefix("teddy ");
        check_exists(
            &outside,
            words.unwrap_or_else(|| panic!("what is `{line}`?")),
        );
    }
    let inline = inline_commands(&page);
    inline
        .iter()
        .for_each(|words| check_exists(&outside, words));
    assert!(lines.len() > 7 && inline.len() > 6, "{lines:?} {inline:?}");

    let configurations = blocks(&page, "yaml");
    configurations.iter().for_each(|block| drop(models(block)));
    let fences = page.lines().filter(|line| line.starts_with("```")).count();
    assert_eq!(2 * (shell.len() + configurations.len()), fences);
}

#[test]
fn commands_for_users_of_other_tools_exist() {
    let page = document("docs/coming-from.md");
    let outside = TestRepo::new();
    let mut tried = 0;
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        for command in between(cells[1], '`') {
            let Some(words) = command.strip_prefix("teddy ") else {
                continue;
            };
            check_exists(&outside, words);
            tried += 1;
        }
    }
    assert!(tried > 40, "{tried} commands");
}
