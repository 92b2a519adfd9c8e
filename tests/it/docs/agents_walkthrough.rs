//! Runs the commands of the agents walkthrough and compares their output with the page.

use std::os::unix::fs::PermissionsExt as _;

use crate::docs::land_walkthrough::check;
use crate::support::TestRepo;

const PAGE: &str = include_str!("../../../docs/walkthroughs/agents.md");

/// Returns the script that the page shows under a name.
fn script(name: &str) -> &'static str {
    let begin = format!("`{name}`:\n\n```sh\n");
    let (_, rest) = PAGE.split_once(&begin).expect("the page shows the script");
    rest.split_once("```").unwrap().0
}

#[test]
fn what_the_page_shows_is_what_the_commands_print() {
    let repo = TestRepo::on_disk()
        .file("greeting.txt", "Hello!\n")
        .file("greet.sh", "cat greeting.txt\n");
    repo.commit("Greet");
    let mut models = String::new();
    for name in ["agent", "other"] {
        let file = repo.beside(name);
        std::fs::write(&file, script(name)).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        models.push_str(&format!(
            "  {name}: {{ kind: agent, run: [{}] }}\n",
            file.display()
        ));
    }
    repo.configure(&format!("models:\n{models}"));
    check(&repo, PAGE);
}
