//! `man --out` writes pages into a directory and nowhere else.

use crate::support::TestRepo;

#[test]
fn pages_are_written_over_links_and_not_through_them() {
    let repo = TestRepo::new();
    let (dir, mine) = (repo.beside("man"), repo.beside("mine"));
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(&mine, "mine\n").unwrap();
    for name in ["teddy.1", "git-teddy.1"] {
        std::os::unix::fs::symlink(&mine, dir.join(name)).unwrap();
    }
    insta::assert_snapshot!(repo.printed(&["man", "--out", "../man"]), @"
    --- stderr
    Wrote the manual to [dir]/repo/../man.
    exit code 0
    ");
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine\n");
    assert!(!dir.join("teddy.1").is_symlink());
    repo.teddy(&["man", "--out", "../man"]).check(0, &[]);

    std::os::unix::fs::symlink(&dir, repo.beside("link")).unwrap();
    let before = crate::support::names(&dir);
    insta::assert_snapshot!(repo.printed(&["man", "--out", "../link"]), @"
    --- stderr
    error: making `[dir]/repo/../link`: it is a symbolic link; name the directory it leads to
    exit code 1
    ");
    assert_eq!(crate::support::names(&dir), before);
}
