//! The workflow of `docs/ci.md`: it equals the file in `fixtures`, has the structure that a forge
//! needs, requests minimal permissions, and uses valid commands.

use std::path::Path;

use serde_json::{Value, json};

use crate::plans::{conclude, create, plan};
use crate::support::TestRepo;

const PAGE: &str = include_str!("../../../docs/ci.md");
const FILE: &str = include_str!("../../../fixtures/ci/teddy.yml");

fn workflow() -> Value {
    serde_yaml::from_str(FILE).unwrap()
}

fn steps(job: &Value) -> &Vec<Value> {
    job["steps"].as_array().unwrap()
}

#[test]
fn the_page_shows_the_file() {
    let (_, rest) = PAGE.split_once("```yaml\n").unwrap();
    assert_eq!(rest.split_once("```\n").unwrap().0, FILE);
}

#[test]
fn the_file_has_the_shape_that_a_forge_needs() {
    let workflow = workflow();
    let jobs = workflow["jobs"].as_object().unwrap();
    assert_eq!(jobs.keys().collect::<Vec<_>>(), ["publish", "session"]);
    for job in jobs.values() {
        assert!(job["runs-on"].is_string() && job["timeout-minutes"].is_u64());
        for step in steps(job) {
            assert!(
                step["uses"].is_string() != step["run"].is_string(),
                "{step}"
            );
        }
    }
    assert_eq!(jobs["publish"]["needs"], "session");
    let inputs = workflow["on"]["workflow_dispatch"]["inputs"].as_object();
    let used = FILE.split("inputs.").skip(1);
    for name in used.map(|rest| rest.split([' ', '}']).next().unwrap()) {
        assert!(inputs.unwrap().contains_key(name), "{name}");
    }
}

#[test]
fn only_a_user_starts_the_job_and_no_part_has_both_a_key_and_write_access() {
    let workflow = workflow();
    let triggers = workflow["on"].as_object().unwrap();
    assert_eq!(triggers.keys().collect::<Vec<_>>(), ["workflow_dispatch"]);
    assert_eq!(workflow["permissions"], json!({}));
    let (session, publish) = (&workflow["jobs"]["session"], &workflow["jobs"]["publish"]);
    assert_eq!(session["permissions"], json!({ "contents": "read" }));
    assert_eq!(
        publish["permissions"],
        json!({ "contents": "write", "pull-requests": "write" })
    );
    assert!(session.to_string().contains("secrets."));
    assert!(!publish.to_string().contains("secrets."));
    assert_eq!(steps(session)[0]["with"]["persist-credentials"], false);
    assert!(!session.to_string().contains("github.token"));
}

#[test]
fn what_is_typed_never_becomes_a_script_and_actions_are_pinned() {
    let workflow = workflow();
    for job in workflow["jobs"].as_object().unwrap().values() {
        for step in steps(job) {
            let script = step["run"].as_str().unwrap_or_default();
            assert!(!script.contains("${{"), "{script}");
        }
    }
    for line in FILE.lines().filter_map(|line| line.split_once("uses: ")) {
        let (id, version) = line.1.split_once(" # v").unwrap();
        let commit = id.split_once('@').unwrap().1;
        assert!(
            commit.len() == 40 && version.split('.').count() == 3,
            "{id}"
        );
    }
}

/// Returns the words of each call of teddy in a script.
fn calls(script: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let parts = script.lines().flat_map(|line| line.split(['|', '&', '>']));
    for part in parts {
        let part = part.replace("$MODEL", "openai:gpt-5");
        let part = part.replace("$MAX_COST", "2").replace('$', "");
        let words = shlex::split(part.trim()).unwrap_or_default();
        if words.first().is_some_and(|word| word == "teddy") {
            found.push(words[1..].to_vec());
        }
    }
    found
}

#[test]
fn the_program_takes_every_call() {
    let outside = TestRepo::new();
    let workflow = workflow();
    let mut scripts = vec![PAGE.split("```yaml").next().unwrap().to_owned()];
    scripts.push(PAGE.rsplit_once("```sh").unwrap().1.to_owned());
    for job in workflow["jobs"].as_object().unwrap().values() {
        let runs = steps(job).iter().filter_map(|step| step["run"].as_str());
        scripts.extend(runs.map(str::to_owned));
    }

    let mut names = Vec::new();
    for call in scripts.iter().flat_map(|script| calls(script)) {
        let plain = |word: &String| match word.as_str() {
            "SESSION" => "ci-1-1".to_owned(),
            _ => word.clone(),
        };
        let words: Vec<String> = call.iter().map(plain).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        names.push(words[0].to_owned());
        // Outside of a repository a valid command fails without any effect, and an invalid one
        // exits with code 2.
        let out = outside.teddy_in(&outside.beside("home"), &words);
        assert!(out.code != 2 && out.code != 0, "{words:?}: {out}");
    }

    for name in [
        "start", "export", "fetch", "push", "switch", "restore", "land",
    ] {
        assert!(names.contains(&name.to_owned()), "{name}: {names:?}");
    }
}

/// Bug: `start` took the name of the session for a file. Outside of a repository, that did not show.
#[test]
fn a_run_of_the_workflow_publishes_the_session() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.git(&["init", "-q", "--bare", "-b", "main", "../server.git"]);
    repo.git(&["remote", "add", "origin", "../server.git"]);
    repo.git(&["push", "-q", "-u", "origin", "main"]);
    repo.git(&["clone", "-q", "../server.git", "../clone"]);
    repo.reply(&plan("Make b", &[create("b.txt", "b\n")]))
        .reply(&plan("Done", &[conclude(&[], "It is there.")]));
    let model = format!("replay:{}", repo.beside("answers").display());
    let workflow = workflow();
    let run = |job: &str, dir: &Path| {
        let scripts = steps(&workflow["jobs"][job]).iter();
        let scripts = scripts.filter_map(|step| step["run"].as_str());
        for call in scripts.flat_map(calls) {
            let words = call.iter().map(|word| match word.as_str() {
                "SESSION" => "ci-1-1",
                "openai:gpt-5" => model.as_str(),
                word => word,
            });
            let words: Vec<&str> = words.collect();
            let out = match words[0] {
                "start" => repo.teddy_reads(&words, "make b\n"),
                _ => repo.teddy_in(dir, &words),
            };
            assert_eq!(out.code, 0, "{words:?}: {out}");
        }
    };

    run("session", &repo.path());
    let clone = repo.beside("clone");
    std::fs::create_dir(clone.join("RUNNER_TEMP")).unwrap();
    let bundle = repo.path().join("session.bundle");
    std::fs::rename(bundle, clone.join("RUNNER_TEMP/session.bundle")).unwrap();
    run("publish", &clone);
    let server = repo.beside("server.git");
    let refs = repo.git_in(&server, &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(refs, "refs/heads/main\nrefs/teddy/bare/ci-1-1");
}
