//! Agents, races, bisect, compare and replay see what a turn's commands see: the user's ignored files,
//! at the path of the checkout.

use crate::plans::{create, edit, execute, plan};
use crate::scripted_agent::scripted_command;
use crate::support::TestRepo;
use crate::support::overlay::overlays;

/// A project whose test program is in an ignored environment that has absolute paths, as those of
/// Python have. The test passes if `code.txt` is in order.
fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file(".gitignore", ".venv/\n")
        .file("code.txt", "works\n");
    repo.commit("init");
    let top = repo.path().canonicalize().unwrap();
    let top = top.display();
    repo.write(".venv/lib/expected", "works\n");
    repo.write(
        ".venv/bin/check",
        format!("#!{top}/.venv/bin/python\ncmp {top}/.venv/lib/expected {top}/code.txt\n"),
    );
    std::os::unix::fs::symlink("/bin/sh", repo.path().join(".venv/bin/python")).unwrap();
    repo.command("chmod")
        .args(["+x", ".venv/bin/check"])
        .current_dir(repo.path())
        .status()
        .unwrap();
    repo.done(&["new", "s"]);
    repo.done(&["context", "add", "code.txt"]);
    repo
}

const CHECK: &str = ".venv/bin/check";

#[test]
fn a_turn_and_its_replay_run_the_project_s_own_environment() {
    if !overlays() {
        return;
    }
    let repo = project();
    let script = format!("{CHECK} && test \"$PWD\" -ef . && git log --oneline && echo ok > made");
    repo.run_plan(&plan("Test", &[execute(&script)]));
    assert_eq!(repo.read("made"), "ok\n");

    // The files have changed since: the replay has the turn's.
    repo.write("code.txt", "changed by the user\n");
    repo.write("made", "changed by the user\n");
    let replayed = repo.json(&["verify", "--rerun", "1"], 0);
    assert_eq!(replayed["same"], true, "{replayed}");
    assert_eq!(repo.read("made"), "changed by the user\n");
}

#[test]
fn bisect_and_compare_run_it_on_the_files_of_each_turn() {
    if !overlays() {
        return;
    }
    let repo = project();
    for number in 1..=6 {
        let action = match number {
            4 => edit("code.txt", "works", "broken"),
            _ => create(&format!("dir/{number}.txt"), "x\n"),
        };
        repo.run_plan(&plan(&format!("Step {number}"), &[action]));
    }
    repo.write("untracked.txt", "of the user's\n");
    let found = repo.json(&["bisect", "run", CHECK], 0);
    assert_eq!(found["culprits"][0]["turn"], 4, "{found}");

    let script = format!("ls dir; ls untracked.txt; {CHECK}");
    let compared = repo.json(&["compare", "s:2", "s:5", "--check", &script], 0);
    let run = |at: usize| compared[at]["check"].clone();
    assert_eq!(
        (&run(0)["exit_code"], &run(1)["exit_code"]),
        (&0.into(), &1.into()),
        "{compared}"
    );
    let tail = run(0)["tail"].to_string();
    assert!(tail.contains("2.txt") && !tail.contains("3.txt"), "{tail}");
    assert_eq!(repo.read("untracked.txt"), "of the user's\n");
}

#[test]
fn a_command_that_cannot_be_run_tests_nothing() {
    let repo = project();
    for name in ["1.txt", "2.txt"] {
        repo.run_plan(&plan("One", &[create(name, "x\n")]));
    }
    for (command, code) in [("no-such-program", 127), ("./code.txt", 126)] {
        repo.teddy(&["bisect", "run", command]).check(
            1,
            &[&format!(
                "the command cannot be run after turn 2 (exit code {code})"
            )],
        );
        let compared = repo.teddy(&["compare", "s:1", "s:2", "--check", command]);
        compared.check(0, &[&format!("cannot test (exit {code})")]);
    }
}

#[test]
fn an_agent_and_the_check_of_a_race_run_it() {
    if !overlays() {
        return;
    }
    let repo = project();
    let work = format!("{CHECK} && pwd > where.txt && echo Tested.");
    let dir = repo.beside("agent");
    std::fs::create_dir(&dir).unwrap();
    let agent = scripted_command(&dir, &work);
    let plan_file = repo.beside("one.md");
    repo.put(plan_file.clone(), plan("Make b", &[create("b.txt", "b\n")]));
    let cat = serde_json::Value::from(format!("cat {}", plan_file.display()));
    repo.configure(&format!(
        "models:\n  agent: {{ kind: agent, run: [{}] }}\n  one: {{ kind: command, run: [sh, -c, {cat}] }}\n",
        agent.display()
    ));
    repo.done(&["plan", "-m", "go", "--model", "agent"]);
    repo.done(&["execute", "-y"]);
    let top = repo.path().canonicalize().unwrap();
    assert_eq!(repo.read("where.txt"), format!("{}\n", top.display()));

    let check = format!("test -e b.txt && {CHECK}");
    let raced = repo.json(&["race", "go", "--with", "one,one", "--check", &check], 0);
    for lane in raced["lanes"].as_array().unwrap() {
        assert_eq!(lane["plan"]["check"]["exit_code"], 0, "{raced}");
    }
}
