//! Files and directories outside of the project that commands read or write.

use super::{Page, project, turn};
use crate::plans::create;

#[test]
fn a_file_or_folder_that_cannot_be_used() {
    let repo = project();
    turn(&repo, &[create("b.txt", "b\n")]);
    std::fs::create_dir(repo.beside("full")).unwrap();
    std::fs::write(repo.beside("full/x"), "").unwrap();
    std::fs::write(repo.beside("file"), "").unwrap();
    let mut page = Page::default();
    for args in [
        &["demo", "../full"][..],
        &["demo", "../file"],
        &["export", "../file"],
        &["man", "--out", "../file/x"],
        &["preprocess"],
    ] {
        page.refused(&repo, args);
    }
    let mut settings = [("TEDDY_CONFIG", repo.path().display().to_string())];
    let variables = settings
        .each_mut()
        .map(|(name, value)| (*name, value.as_str()));
    page.refused_with(&repo, &["status"], &variables);
    page.compare("files");
}

#[test]
fn a_plan_that_is_repaired_in_its_file() {
    let repo = project();
    repo.write("doubt.md", "# Change\n\n## Action Plan\n\n### `CREATE`\n- **File Path:** [x.md](/x.md)\n```markdown\nx\n");
    repo.write("none.md", "Some notes.\n");
    let mut page = Page::default();
    page.shown(&repo, &["preprocess", "doubt.md"]);
    page.shown(&repo, &["preprocess", "none.md"]);
    page.compare("preprocess");
}
