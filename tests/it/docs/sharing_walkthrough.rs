//! Runs the commands of the `push` and `fetch` walkthrough and compares their output with the page.

use crate::docs::land_walkthrough::check;
use crate::plans::{create, plan};
use crate::support::TestRepo;

/// Returns the repository at the start of the page, with a server and a clone next to it.
fn repository() -> TestRepo {
    let repo = TestRepo::new().file("greet.sh", "echo 'Hello!'\n");
    repo.commit("Greet");
    repo.git(&["init", "-q", "--bare", "-b", "main", "../server.git"]);
    repo.git(&["remote", "add", "origin", "../server.git"]);
    repo.git(&["push", "-q", "-u", "origin", "main"]);
    repo.git(&["clone", "-q", "../server.git", "../ben"]);
    repo.write("todo.txt", "tell everybody\n");
    let greet = create("politely.sh", "echo \"Good morning, $1.\"\n");
    let place = create("where.txt", "/home/ada/greet\n");
    for (name, title, action) in [
        ("plan.md", "Greet politely", greet),
        ("where.md", "Say where it is", place),
    ] {
        std::fs::write(repo.beside(name), plan(title, &[action])).unwrap();
    }
    repo
}

#[test]
fn the_walkthrough_of_sharing_shows_what_is_printed() {
    check(
        &repository(),
        include_str!("../../../docs/walkthroughs/sharing.md"),
    );
}
