//! Far more nested directories than fit into a path.

use std::path::Path;

use super::ground::{Ground, create, plan, run};
use crate::support::TestRepo;

#[test]
fn attack_11_thirty_thousand_nested_directories_cost_in_proportion() {
    // In memory: on some disks it takes a millisecond to remove a directory.
    let memory = Path::new("/dev/shm");
    let repo = if memory.is_dir() {
        TestRepo::below(memory, &[])
    } else {
        TestRepo::new()
    };
    let ground = Ground {
        repo: repo.file("a.txt", "one\n"),
    };
    ground.repo.commit("one");
    ground.ok(&["new", "s"]);

    // Landlock checks all parent directories for each new one, which makes the command slow.
    let free = ["-c", "execute.sandbox=off"];
    let deep = "python3 -c 'import os; [(os.mkdir(\"d\"), os.chdir(\"d\")) for _ in range(30000)]'";
    let tried = ground.execute_with(plan(&(run(deep) + &create("made.txt"))), &free);
    assert_eq!(tried.code, 0, "{}", tried.words);
    assert!(tried.words.contains("too deep in other folders"));
    let next = ground.execute_with(plan(&run("test ! -e d && test -f made.txt")), &free);
    assert_eq!(next.code, 0, "{}", next.words);
}
