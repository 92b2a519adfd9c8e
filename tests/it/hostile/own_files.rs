//! Commands change none of TeDDy's own files in the project, which configure the next turn and choose
//! what is sent to the model, and move nothing to where no turn can have it.

use super::ground::{Ground, everything_works, plan, run};
use crate::support::overlay::{CHECKOUT, OVERLAY, overlays};

/// Runs a command in each way in which this machine can show files to it. Returns what was printed.
#[track_caller]
fn in_each_backend(command: &str, check: impl Fn(&Ground, &str)) {
    for backend in [CHECKOUT, OVERLAY] {
        if backend == OVERLAY && !overlays() {
            continue;
        }
        let ground = Ground::new();
        let tried = ground.execute_with(plan(&run(command)), &["-c", backend]);
        assert_eq!(tried.code, 0, "{command}: {}", tried.words);
        check(&ground, &tried.words);
    }
}

#[test]
fn no_command_changes_them() {
    let command = "mkdir -p .teddy/prompts; echo ignored > .teddy/global.context; \
        echo 'replan: {max: banana}' > .teddy/config.yaml; echo '{{{{: [' > .teddy/memos.yaml; echo b > b.txt";
    in_each_backend(command, |ground, words| {
        let repo = &ground.repo;
        assert!(!repo.path().join(".teddy").exists(), "{words}");
        let why =
            "`.teddy/config.yaml` is not recorded: no command changes TeDDy's own files (2 more)";
        assert!(words.contains(why), "{words}");
        assert_eq!(repo.read("b.txt"), "b\n");

        repo.put("ignored", "not for the model\n");
        repo.put("../plan.md", plan(&run("true")));
        repo.done(&["plan", "-m", "go on", "--from", "../plan.md"]);
        let input = repo.git(&["show", "refs/teddy/drafts/s:input.md"]);
        assert!(!input.contains("not for the model"), "{input}");
        everything_works(ground, "files of TeDDy");
    });
}

#[test]
fn memos_are_added_to_those_before_a_command_that_breaks_the_list() {
    let memos = "## Memos\n````text\n[+] kept\n````\n\n## Action Plan";
    let command = "mkdir -p .teddy; echo '{{{{: [' > .teddy/memos.yaml";
    for backend in [CHECKOUT, OVERLAY] {
        if backend == OVERLAY && !overlays() {
            continue;
        }
        let ground = Ground::new();
        let text = plan(&run(command)).replace("## Action Plan", memos);
        let tried = ground.execute_with(text, &["-c", backend]);
        assert_eq!(tried.code, 0, "{}", tried.words);
        assert_eq!(ground.repo.read(".teddy/memos.yaml"), "- kept\n");
    }
}

#[test]
fn a_file_that_is_moved_where_no_turn_has_it_stays() {
    for (command, why) in [
        (
            "mkdir -p .teddy; mv src/main.rs .teddy/",
            "`.teddy/main.rs` is not recorded: no command changes TeDDy's own files",
        ),
        (
            "mv src .gitmodules",
            "moved into a directory, and git requires a file of this name; `src/main.rs` stays",
        ),
    ] {
        in_each_backend(command, |ground, words| {
            assert!(words.contains(why), "{command}: {words}");
            assert_eq!(ground.repo.read("src/main.rs"), "fn main() {}\n");
            ground.repo.git(&["fsck", "--strict", "--no-dangling"]);
        });
    }
}
