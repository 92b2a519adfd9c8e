//! Timelines of sessions with their branches, even if some sessions are damaged.

use teddy::project::{Project, ProjectOptions, UserDirs};
use teddy::query::view::timeline::{SessionLane, mark, newest, timeline};
use teddy::session::name::SessionName;

use crate::plans::{create, edit, plan};
use crate::support::TestRepo;

pub fn project(repo: &TestRepo) -> Project {
    let home = repo.beside("home");
    let places = UserDirs {
        home: Some(home.clone()),
        config: home.join("config/teddy"),
        config_file: repo.beside("teddy.yaml"),
        cache: home.join("cache/teddy"),
    };
    Project::open_record(&repo.path(), places, ProjectOptions::default()).unwrap()
}

/// One session has two turns, the other branches off after the first.
fn two_sessions() -> TestRepo {
    let repo = TestRepo::new().file("src/a.txt", "one\ntwo\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["src/a.txt"]);
    repo.workflow()
        .run_plan(&plan("Change a", &[edit("src/a.txt", "two", "2")]));
    repo.workflow()
        .run_plan(&plan("Make b", &[create("b.txt", "b\n")]));
    repo.workflow().branch("1", "other").done();
    repo.workflow()
        .run_plan(&plan("Make c", &[create("src/c.txt", "c\n")]));
    repo
}

/// Formats a lane for comparison.
fn line(lane: &SessionLane) -> String {
    let rows = lane.rows.iter();
    let rows: Vec<String> = rows
        .map(|row| format!("{} {}", row.number, row.title))
        .collect();
    let mark = if lane.in_use { "*" } else { "" };
    let from = lane.parent.as_ref();
    let from = from.map_or(String::new(), |(name, turn)| format!(" from {name}:{turn}"));
    format!("{mark}{}{from}: {}", lane.name, rows.join(", "))
}

#[test]
fn a_turn_is_in_the_lane_of_the_session_in_which_it_was_made() {
    let repo = two_sessions();
    let project = project(&repo);
    let all = timeline(&project, None).unwrap();
    let expected = [
        "*other from demo:1: 2 Make c",
        "demo: 2 Make b, 1 Change a, 0 Start session demo",
    ];
    let lanes: Vec<String> = all.sessions.iter().map(line).collect();
    assert_eq!(lanes, expected);
    assert_eq!(newest(&project, None, 50).unwrap(), all);

    let only = SessionName::parse("other").unwrap();
    let one = timeline(&project, Some(&only)).unwrap();
    assert_eq!(
        one.sessions.iter().map(line).collect::<Vec<_>>(),
        expected[..1]
    );
    let none = SessionName::parse("none").unwrap();
    assert!(timeline(&project, Some(&none)).is_err());
}

#[test]
fn a_branch_without_turns_of_its_own_has_an_empty_lane() {
    let repo = two_sessions();
    repo.workflow().branch("1", "third").done();
    let all = timeline(&project(&repo), None).unwrap();
    assert_eq!(line(&all.sessions[0]), "*third from demo:1: ");
}

#[test]
fn a_turn_of_another_process_is_noticed() {
    let repo = two_sessions();
    let project = project(&repo);
    let before = mark(&project, None).unwrap();
    assert_eq!(mark(&project, None).unwrap(), before);
    repo.workflow()
        .run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    assert_ne!(mark(&project, None).unwrap(), before);
}

#[test]
fn a_damaged_turn_hides_no_other() {
    let repo = two_sessions();
    let reference = "refs/teddy/sessions/demo";
    let empty = repo.git(&["mktree"]);
    let bad = repo.git(&[
        "commit-tree",
        &empty,
        "-p",
        &format!("{reference}~"),
        "-m",
        "x",
    ]);
    let tree = format!("{reference}^{{tree}}");
    let message = repo.git(&["log", "-1", "--format=%B", reference]);
    let tip = repo.git(&["commit-tree", &tree, "-p", &bad, "-m", &message]);
    repo.git(&["update-ref", reference, &tip]);

    let all = timeline(&project(&repo), None).unwrap();
    let lanes: Vec<String> = all.sessions.iter().map(line).collect();
    assert_eq!(
        lanes,
        [
            "*other from demo:1: 2 Make c",
            "demo: 2 Make b, 1 Change a, 0 Start session demo",
        ]
    );
    assert_eq!(all.sessions[0].ailing, None);
    assert_eq!(
        all.sessions[1].ailing,
        Some(format!("commit {bad} is not a turn of a session"))
    );
}
