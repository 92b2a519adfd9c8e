//! Runs the commands of the walkthrough of bundles and compares their output with the page.

use crate::docs::land_walkthrough::check;
use crate::plans::{edit, execute, plan};
use crate::support::TestRepo;

/// Next to the project is a plan that makes it greet by name. Its second action is on the page.
pub fn greeting(page: &str) -> TestRepo {
    let repo = TestRepo::new().file("greet.sh", "echo 'Hello!'\n");
    repo.commit("Greet");
    repo.write(".teddy/global.context", "greet.sh\n");
    let actions = [
        edit("greet.sh", "echo 'Hello!'", "echo \"Hello, $1!\""),
        execute("sh greet.sh Ada"),
    ];
    assert!(page.contains(&actions[1]), "{}", actions[1]);
    let text = plan("Greet people by name", &actions);
    std::fs::write(repo.beside("plan.md"), text).unwrap();
    repo
}

#[test]
fn what_the_page_shows_is_what_the_commands_print() {
    let page = include_str!("../../../docs/walkthroughs/archive.md");
    check(&greeting(page), page);
}
