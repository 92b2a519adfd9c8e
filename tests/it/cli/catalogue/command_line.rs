//! Invalid command lines, which exit with code 2.

use super::{Page, project};

#[test]
fn a_wrong_command_line() {
    let repo = project();
    let mut page = Page::default();
    for args in [
        &["nonsense"][..],
        &["exceute"],
        &["log", "--nonsense"],
        &["restore"],
        &["plan", "-m"],
        &["log", "-n", "many"],
        &["-c", "nonsense", "status"],
        &["-c", "replan.max=many", "status"],
        &["-c", "modle=x", "status"],
        &["new", "Not_A_Name"],
        &["new", "12"],
        &["-s", "a..b", "log"],
        &["change", "show", "Not An Id"],
        &["change"],
        &["completions", "tcsh"],
        &["restore", "1", "--ours", "--theirs"],
    ] {
        page.refused(&repo, args);
    }
    page.refused(&repo, &["-C", "nowhere", "status"]);
    page.refused(&repo, &["-C", "a.txt", "status"]);
    page.compare("command-line");
}
