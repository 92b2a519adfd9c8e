//! Compares the search for secrets with one that has no cache.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::git::snapshot::take_snapshot;
use crate::host::file::Root;

/// Names of files with a key in them. The first is ignored.
const KEYED: [&str; 2] = ["token", "notes"];

fn text_of(path: &Path) -> String {
    match KEYED.iter().any(|name| path.ends_with(name)) {
        true => format!("token = \"ghp_{}\"\n", "a9Zk3Qx7Lm2Vt8Rb5Nw4".repeat(2)),
        false => String::new(),
    }
}

struct Project(tempfile::TempDir);

impl Project {
    fn new() -> Project {
        let dir = tempfile::tempdir().unwrap();
        gix::init(dir.path()).unwrap();
        std::fs::write(dir.path().join(".gitignore"), "token\nignored/\n").unwrap();
        Project(dir)
    }

    fn put(&self, path: &str) {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text_of(&path)).unwrap();
    }

    fn secrets(&self, after_snapshot: bool) -> anyhow::Result<Vec<String>> {
        let cache_path = self.0.path().join(".git/teddy/secrets/main");
        self.secrets_with(&cache_path, after_snapshot)
    }

    fn anew(&self) -> Vec<String> {
        let elsewhere = tempfile::tempdir().unwrap();
        let cache_path = elsewhere.path().join("kept");
        self.secrets_with(&cache_path, false).unwrap()
    }

    fn secrets_with(&self, cache_path: &Path, after_snapshot: bool) -> anyhow::Result<Vec<String>> {
        let repository = Repository::open(self.0.path())?;
        let limits = SnapshotLimits::default();
        let index = repository.teddy_dir().join("index/main");
        if after_snapshot {
            take_snapshot(&repository, &index, &limits, &[])?;
        }
        let search = SecretSearch::new(&repository, &limits, cache_path, &index);
        let found = search.run()?;
        let paths = found.by_name.into_iter().chain(found.keyed);
        let mut secrets: Vec<String> = paths.map(|path| String::from_utf8(path).unwrap()).collect();
        secrets.sort();
        Ok(secrets)
    }
}

#[test]
fn secrets_are_found_in_every_folder_that_can_be_read_and_too_deep_ones_are_an_error() {
    let project = Project::new();
    ["a/.env", "a/.git/.env", "b/id_rsa", "b/c.txt"]
        .into_iter()
        .for_each(|path| project.put(path));
    (0..700).for_each(|number| project.put(&format!("many/{number}/.env")));
    for _ in 0..3 {
        let actual = project.secrets(true).unwrap();
        assert_eq!(actual.len(), 702);
        assert_eq!(actual[..2], ["a/.env", "b/id_rsa"]);
    }

    let mut deep = Root::open(project.0.path()).unwrap();
    for _ in 0..20 {
        let name = Path::new("x").join("y".repeat(250));
        deep = deep.make_dir(&name).unwrap();
    }
    project.secrets(true).unwrap_err();
}

#[test]
fn a_folder_that_did_not_change_is_not_listed_again() {
    let project = Project::new();
    project.put("a/.env");
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(project.secrets(true).unwrap(), ["a/.env"]);

    // A changed cache shows that the directory was not listed.
    let cache_path = project.0.path().join(".git/teddy/secrets/main");
    let text = std::fs::read(&cache_path).unwrap();
    let at = text.windows(4).position(|part| part == b".env").unwrap();
    let mut other = text.clone();
    other[at..at + 4].copy_from_slice(b".abc");
    let sum = crate::git::snapshot::cache::checksum(&other[16..]);
    other[8..16].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(&cache_path, &other).unwrap();
    assert_eq!(project.secrets(false).unwrap(), ["a/.abc"]);

    // A cache with a wrong checksum is ignored.
    other[at] = b'x';
    std::fs::write(&cache_path, &other).unwrap();
    assert_eq!(project.secrets(false).unwrap(), ["a/.env"]);
}

#[derive(Debug, Clone)]
enum Action {
    Put(String),
    Remove(String),
    Move(String, String),
    Link(String, String),
}

fn actions() -> impl Strategy<Value = Action> {
    let dir = prop::sample::select(vec!["a", "a/b", "c", "c/d/e", "m", "a/ignored"]);
    let names = vec![
        ".env",
        "key.pem",
        "x.txt",
        "id_rsa",
        "token",
        "notes",
        "CACHEDIR.TAG",
        "target/token",
    ];
    let name = prop::sample::select(names);
    let file = (dir.clone(), name).prop_map(|(dir, name)| format!("{dir}/{name}"));
    let dir = dir.prop_map(str::to_owned);
    prop_oneof![
        4 => file.clone().prop_map(Action::Put),
        1 => file.prop_map(Action::Remove),
        1 => dir.clone().prop_map(Action::Remove),
        2 => (dir.clone(), dir.clone()).prop_map(|(from, to)| Action::Move(from, to)),
        1 => (dir.clone(), dir).prop_map(|(from, to)| Action::Link(from, to)),
    ]
}

impl Project {
    fn act(&self, action: &Action) -> std::io::Result<()> {
        let at = |path: &str| self.0.path().join(path);
        match action {
            Action::Put(path) => {
                std::fs::create_dir_all(at(path).parent().unwrap_or(self.0.path()))?;
                std::fs::write(at(path), text_of(&at(path)))
            }
            Action::Remove(path) if at(path).is_dir() => std::fs::remove_dir_all(at(path)),
            Action::Remove(path) => std::fs::remove_file(at(path)),
            Action::Move(from, to) => std::fs::rename(at(from), at(to)),
            Action::Link(from, to) => std::os::unix::fs::symlink(at(from), at(to)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    #[test]
    fn what_is_kept_hides_nothing_whatever_the_user_does(
        steps in prop::collection::vec((actions(), any::<bool>(), any::<bool>()), 1..25)
    ) {
        let project = Project::new();
        for (action, waits, after_snapshot) in steps {
            let _ = project.act(&action);
            let actual = project.secrets(after_snapshot).unwrap();
            prop_assert_eq!(&actual, &project.secrets(false).unwrap());
            prop_assert_eq!(actual, project.anew());
            // The file system's clock ticks every few milliseconds.
            if waits {
                std::thread::sleep(Duration::from_millis(6));
            }
        }
    }
}

#[test]
fn a_directory_whose_files_are_recorded_is_not_listed_for_keys() {
    let project = Project::new();
    for path in ["a/x.txt", "a/sub/y.txt", "b/x.txt", "b/token"] {
        project.put(path);
    }
    std::thread::sleep(Duration::from_millis(20));
    for _ in 0..2 {
        assert_eq!(project.secrets(true).unwrap(), ["b/token"]);
    }

    let repository = Repository::open(project.0.path()).unwrap();
    let limits = SnapshotLimits::default();
    let cache_path = project.0.path().join(".git/teddy/secrets/main");
    let index = repository.teddy_dir().join("index/main");
    let search = SecretSearch::new(&repository, &limits, &cache_path, &index);
    let top = search.finder.open().unwrap();
    let cache = Cache::load(&cache_path, repository.gix.object_hash()).unwrap();
    let saved = SavedDirs::compare(cache, &top);
    let keys = KeySearch {
        limits: &limits,
        last: search.last.as_deref(),
        saved: Some(&saved),
    };
    let recorded = |path: &str| {
        let subdirs = keys.recorded_dir(path.as_bytes(), keys.last_dir(path.as_bytes()).as_ref());
        subdirs.map(|dirs| dirs.concat())
    };
    assert_eq!(recorded("a"), Some(b"a/sub".to_vec()));
    assert_eq!(recorded("a/sub"), Some(Vec::new()));
    assert_eq!(recorded("b"), None);
}
