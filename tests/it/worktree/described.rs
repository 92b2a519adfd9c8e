//! What users and models read about the shells and the sandbox of commands: `-v`, `doctor` and the input
//! of a model, on machines with other features and settings.

use std::fmt::Write as _;

use serde_json::Value;

use crate::machine::Machine;
use crate::plans::{chat, plan};
use crate::support::Output;
use crate::support::overlay::overlays;

/// A feature that the kernel lacks, and a setting.
const CASES: [(&str, &str); 11] = [
    ("", ""),
    ("no-namespaces=return", ""),
    ("no-overlay=return", ""),
    ("no-network-namespace=return", ""),
    ("no-terminals=return", ""),
    ("no-seccomp=return", ""),
    ("landlock=return(0)", ""),
    ("landlock=return(2)", ""),
    ("", "execute.sandbox=off"),
    ("", "execute.network=true"),
    ("", "worktree.backend=checkout"),
];

/// Returns what is said of commands in one case.
fn described(machine: &Machine, failpoint: &str, setting: &str) -> String {
    let more = [("FAILPOINTS", failpoint)];
    let run = |args: &[&str]| match setting {
        "" => machine.teddy(args, &more),
        _ => machine.teddy(&[&["-c", setting], args].concat(), &more),
    };
    let planned = run(&["-v", "plan", "-m", "go", "--model", "one"]);
    assert_eq!(planned.code, 0, "{planned}");
    let mut lines = planned.stderr.lines();
    let line = lines.find_map(|line| Some(line.split_once("Commands run ")?.1));
    let line = line.unwrap_or_else(|| panic!("{planned}"));
    let (commands, _) = line.split_once(" Settings: ").unwrap();
    let mut text = format!("Commands run {commands}\n");

    let input = machine
        .repo
        .git(&["show", "refs/teddy/drafts/demo:input.md"]);
    let of_system =
        |line: &&str| line.starts_with("- **Shell:") || line.starts_with("- **Commands:");
    input
        .lines()
        .filter(of_system)
        .for_each(|line| writeln!(text, "{line}").unwrap());

    let report = run(&["doctor", "--json"]);
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    for check in report["checks"].as_array().unwrap() {
        let part = |key: &str| check[key].as_str().unwrap_or_default();
        if !["sandbox", "overlay", "commands"].contains(&part("name")) {
            continue;
        }
        writeln!(text, "{}: {}", part("state"), part("reason")).unwrap();
        match (part("name"), part("remedy")) {
            (_, "") => {}
            // It depends on the machine, and has a test of its own.
            ("overlay" | "commands", remedy) if !remedy.starts_with("teddy ") => {
                text.push_str("  fix: [remedy]\n");
            }
            (_, remedy) => writeln!(text, "  fix: {remedy}").unwrap(),
        }
    }
    text
}

fn machine() -> Machine {
    let machine = Machine::new();
    let answer = machine.repo.beside("one.md");
    machine.repo.put(&answer, plan("Ask", &[chat("Which?")]));
    machine.repo.configure(&format!(
        "models:\n  one: {{ kind: command, run: [cat, '{}'] }}\n",
        answer.display()
    ));
    machine.teddy(&["new", "demo"], &[]).check(0, &[]);
    machine
}

#[test]
fn each_machine_is_described_as_it_is() {
    if !overlays() {
        return;
    }
    let machine = machine();
    let texts = CASES.map(|(failpoint, setting)| {
        let text = described(&machine, failpoint, setting);
        match (failpoint, setting) {
            ("", "") => format!("## nothing is missing\n{text}"),
            _ => format!("## {failpoint}{setting}\n{text}"),
        }
    });
    insta::assert_snapshot!(texts.join("\n"), @"
    ## nothing is missing
    Commands run over your files, in an overlay, with their own loopback and pseudo-terminals, in sh.
    - **Shell:** sh
    - **Commands:** sandboxed, no network
    ok: commands can be sandboxed
    ok: commands, agents, the lanes and checks of races, `bisect run`, `compare --check`, `verify --rerun` and `worktree.setup` run over your files, in an overlay
    ok: commands have a network of their own with loopback, pseudo-terminals, and these shells: sh

    ## no-namespaces=return
    Commands run in a copy of your files (commands get no view of their own here), with no network and no pseudo-terminals, in sh.
    - **Shell:** sh
    - **Commands:** sandboxed, no network
    note: commands, agents, the lanes and checks of races, `bisect run`, `compare --check`, `verify --rerun` and `worktree.setup` run in a copy of your files, with links to ignored dependencies, and other ignored files only if `worktree.copy` or `worktree.link` names them: commands get no view of their own here
      fix: [remedy]
    note: commands have no network, not even loopback, no pseudo-terminals, and these shells: sh
      fix: [remedy]
    ok: commands can be sandboxed

    ## no-overlay=return
    Commands run in a copy of your files (kernel without overlays), with their own loopback and pseudo-terminals, in sh.
    - **Shell:** sh
    - **Commands:** sandboxed, no network
    note: commands, agents, the lanes and checks of races, `bisect run`, `compare --check`, `verify --rerun` and `worktree.setup` run in a copy of your files, with links to ignored dependencies, and other ignored files only if `worktree.copy` or `worktree.link` names them: kernel without overlays
      fix: [remedy]
    ok: commands can be sandboxed
    ok: commands have a network of their own with loopback, pseudo-terminals, and these shells: sh

    ## no-network-namespace=return
    Commands run over your files, in an overlay, with no network and pseudo-terminals, in sh.
    - **Shell:** sh
    - **Commands:** sandboxed, no network
    note: commands have no network, not even loopback, pseudo-terminals, and these shells: sh
      fix: [remedy]
    ok: commands can be sandboxed
    ok: commands, agents, the lanes and checks of races, `bisect run`, `compare --check`, `verify --rerun` and `worktree.setup` run over your files, in an overlay

    ## no-terminals=return
    Commands run over your files, in an overlay, with their own loopback and no pseudo-terminals, in sh.
    - **Shell:** sh
    - **Commands:** sandboxed, no network
    note: commands have a network of their own with loopback, no pseudo-terminals, and these shells: sh
      fix: [remedy]
    ok: commands can be sandboxed
    ok: commands, agents, the lanes and checks of races, `bisect run`, `compare --check`, `verify --rerun` and `worktree.setup` run over your files, in an overlay

    ## no-seccomp=return
    Commands run over your files, in an overlay, with their own loopback and pseudo-terminals, in sh.
    - **Shell:** sh
    - **Commands:** partly sandboxed, network open nevertheless: kernel without seccomp
    warning: commands are only partly sandboxed: kernel without seccomp
      fix: cat /sys/kernel/security/lsm  # shows whether Landlock is on
    ok: commands, agents, the lanes and checks of races, `bisect run`, `compare --check`, `verify --rerun` and `worktree.setup` run over your files, in an overlay
    ok: commands have a network of their own with loopback, pseudo-terminals, and these shells: sh

    ## landlock=return(0)
    Commands run over your files, in an overlay, with your network, not sandboxed, in sh.
    - **Shell:** sh
    - **Commands:** not sandboxed: kernel without Landlock
    warning: commands are not sandboxed, and can do what you can: kernel without Landlock
      fix: cat /sys/kernel/security/lsm  # shows whether Landlock is on
    ok: commands, agents, the lanes and checks of races, `bisect run`, `compare --check`, `verify --rerun` and `worktree.setup` run over your files, in an overlay

    ## landlock=return(2)
    Commands run over your files, in an overlay, with their own loopback and pseudo-terminals, in sh.
    - **Shell:** sh
    - **Commands:** partly sandboxed, no network: Landlock has version 2 in this kernel, and 3 is the least
    warning: commands are only partly sandboxed: Landlock has version 2 in this kernel, and 3 is the least
      fix: cat /sys/kernel/security/lsm  # shows whether Landlock is on
    ok: commands, agents, the lanes and checks of races, `bisect run`, `compare --check`, `verify --rerun` and `worktree.setup` run over your files, in an overlay
    ok: commands have a network of their own with loopback, pseudo-terminals, and these shells: sh

    ## execute.sandbox=off
    Commands run in a copy of your files (`execute.sandbox` is `off`), with your network, not sandboxed, in sh.
    - **Shell:** sh
    - **Commands:** not sandboxed
    note: `execute.sandbox` is `off`: the commands of plans can do what you can
      fix: teddy -c execute.sandbox=on ...
    note: commands, agents, the lanes and checks of races, `bisect run`, `compare --check`, `verify --rerun` and `worktree.setup` run in a copy of your files, with links to ignored dependencies, and other ignored files only if `worktree.copy` or `worktree.link` names them: `execute.sandbox` is `off`

    ## execute.network=true
    Commands run over your files, in an overlay, with your network and pseudo-terminals, in sh.
    - **Shell:** sh
    - **Commands:** sandboxed, network open
    ok: commands can be sandboxed
    ok: commands, agents, the lanes and checks of races, `bisect run`, `compare --check`, `verify --rerun` and `worktree.setup` run over your files, in an overlay
    ok: commands have your network, pseudo-terminals, and these shells: sh

    ## worktree.backend=checkout
    Commands run in a copy of your files (`worktree.backend` is `checkout`), with their own loopback and pseudo-terminals, in sh.
    - **Shell:** sh
    - **Commands:** sandboxed, no network
    note: commands, agents, the lanes and checks of races, `bisect run`, `compare --check`, `verify --rerun` and `worktree.setup` run in a copy of your files, with links to ignored dependencies, and other ignored files only if `worktree.copy` or `worktree.link` names them: `worktree.backend` is `checkout`
      fix: teddy -c worktree.backend=auto ...
    ok: commands can be sandboxed
    ok: commands have a network of their own with loopback, pseudo-terminals, and these shells: sh
    ");
}

#[test]
fn shells_are_described_as_they_are_installed_and_configured() {
    let shells = |machine: &Machine, args: &[&str]| {
        let out: Output = machine.teddy(&[args, &["-v", "status"]].concat(), &[]);
        let mut lines = out.stderr.lines();
        let line = lines.find_map(|line| Some(line.split_once("pseudo-terminals, ")?.1));
        let line = line.unwrap_or_else(|| panic!("{out}"));
        line.split_once(" Settings: ").unwrap().0.to_owned()
    };
    let bare = machine();
    let all = machine().program("bash", "true").program("zsh", "true");
    let texts = [
        shells(&bare, &[]),
        shells(&all, &[]),
        shells(&all, &["-c", "execute.shell=bash -e"]),
    ];
    insta::assert_snapshot!(texts.join("\n"), @"
    in sh.
    in sh; `bash` blocks run in bash; `zsh` blocks run in zsh.
    in bash -e.
    ");
}
