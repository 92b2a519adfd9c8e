//! Random steps of two people and a server. What one pushes the other fetches, no turn is
//! overwritten, and a fetch changes no local session.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::plans::{create, plan};
use crate::support::remotes::two_people;
use crate::support::{TestRepo, seeds};

/// Both people use these names.
const SESSIONS: [&str; 2] = ["add-auth", "other"];

#[derive(Debug, Clone)]
enum Step {
    /// Executes a plan in a session.
    Turn { who: usize, session: usize },
    /// Pushes a session, bare or with its code.
    Push {
        who: usize,
        session: usize,
        code: bool,
    },
    /// Fetches all sessions.
    Fetch { who: usize, prune: bool },
    /// Starts a session at the newest fetched turn of the other person's.
    Branch { who: usize, session: usize },
    /// Deletes a session on the server.
    Delete { who: usize, session: usize },
    /// Runs `git gc` or `git pack-refs` on the server.
    Tidy { pack: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let (who, session) = (0..2usize, 0..SESSIONS.len());
    prop_oneof![
        3 => (who.clone(), session.clone()).prop_map(|(who, session)| Step::Turn { who, session }),
        4 => (who.clone(), session.clone(), any::<bool>())
            .prop_map(|(who, session, code)| Step::Push { who, session, code }),
        3 => (who.clone(), any::<bool>()).prop_map(|(who, prune)| Step::Fetch { who, prune }),
        1 => (who.clone(), session.clone()).prop_map(|(who, session)| Step::Branch { who, session }),
        1 => (who, session).prop_map(|(who, session)| Step::Delete { who, session }),
        1 => any::<bool>().prop_map(|pack| Step::Tidy { pack }),
    ]
}

/// Two people with a server.
struct World {
    people: [TestRepo; 2],
    turns: usize,
}

impl World {
    fn refs(&self, repo: usize, prefix: &str) -> BTreeMap<String, String> {
        listed(&self.people[repo].git(&[
            "for-each-ref",
            "--format=%(refname) %(objectname)",
            prefix,
        ]))
    }

    fn server(&self) -> BTreeMap<String, String> {
        let folder = self.people[0].beside("server.git");
        let format = "--format=%(refname) %(objectname)";
        listed(&self.people[0].git_in(&folder, &["for-each-ref", format, "refs/teddy"]))
    }

    /// Runs a step and checks the guarantees afterwards.
    fn take(&mut self, step: &Step) {
        let before = self.server();
        let own = [0, 1].map(|who| self.refs(who, "refs/teddy/sessions"));
        match *step {
            Step::Turn { who, session } => {
                self.turns += 1;
                let name = SESSIONS[session];
                let repo = &self.people[who];
                if !own[who].contains_key(&format!("refs/teddy/sessions/{name}")) {
                    repo.done(&["new", name]);
                }
                let path = format!("made-{}.txt", self.turns);
                let text = plan(&format!("Turn {}", self.turns), &[create(&path, "made\n")]);
                let out = repo.teddy_reads(&["-s", name, "execute", "-", "-y"], text);
                assert_eq!(out.code, 0, "{out}");
            }
            Step::Push { who, session, code } => self.push(who, SESSIONS[session], code),
            Step::Fetch { who, prune } => {
                let args: &[&str] = if prune {
                    &["fetch", "--prune"]
                } else {
                    &["fetch"]
                };
                self.people[who].done(args);
                self.check_fetched(who, prune);
            }
            Step::Branch { who, session } => {
                self.turns += 1;
                let name = format!("branch-{}", self.turns);
                let from = format!("origin/{}:@", SESSIONS[session]);
                let out = self.people[who].teddy(&["branch", &from, &name]);
                assert!(out.code == 0 || out.code == 1, "{out}");
            }
            Step::Delete { who, session } => {
                let out = self.people[who].teddy(&["push", "--delete", SESSIONS[session], "-y"]);
                assert!(out.code == 0 || out.code == 1, "{out}");
            }
            Step::Tidy { pack } => {
                let folder = self.people[0].beside("server.git");
                let args: &[&str] = if pack {
                    &["pack-refs", "--all"]
                } else {
                    &["gc", "-q", "--prune=now"]
                };
                self.people[0].git_in(&folder, args);
            }
        }

        if !matches!(step, Step::Delete { .. } | Step::Push { .. }) {
            assert_eq!(self.server(), before, "{step:?}");
        }
        if matches!(
            step,
            Step::Fetch { .. } | Step::Push { .. } | Step::Delete { .. }
        ) {
            assert_eq!(
                [0, 1].map(|who| self.refs(who, "refs/teddy/sessions")),
                own,
                "{step:?}"
            );
        }
        let left = [0, 1].map(|who| self.refs(who, "refs/teddy/incoming"));
        assert!(left.iter().all(BTreeMap::is_empty), "{step:?}: {left:?}");
    }

    /// Pushes a session. The server must keep everything it had.
    fn push(&self, who: usize, name: &str, code: bool) {
        let before = self.server();
        let mode = if code { "--code" } else { "--no-code" };
        let out = self.people[who].teddy(&["push", name, mode, "-y"]);
        assert!(out.code == 0 || out.code == 1, "{out}");
        let after = self.server();
        if out.code == 1 {
            assert_eq!(after, before, "{out}");
            return;
        }

        let folder = self.people[0].beside("server.git");
        for (reference, id) in &before {
            let now = after.get(reference).cloned().or_else(|| {
                let session = reference.strip_prefix("refs/teddy/bare/")?;
                let taken = format!("refs/teddy/sessions/{session}");
                // If a session replaces a bare one, it starts with its turns.
                let (old, new) = (self.ids(id), self.ids(after.get(&taken)?));
                new.starts_with(&old).then(|| id.clone())
            });
            let now = now.unwrap_or_else(|| panic!("{reference} is gone: {out}"));
            self.people[0].git_in(&folder, &["merge-base", "--is-ancestor", id, &now]);
        }
        let both = format!("refs/teddy/bare/{name}");
        assert!(
            !(after.contains_key(&both)
                && after.contains_key(&format!("refs/teddy/sessions/{name}")))
        );
    }

    /// Returns the turn ids of a chain on the server, oldest first.
    fn ids(&self, tip: &str) -> Vec<String> {
        let folder = self.people[0].beside("server.git");
        let commits =
            self.people[0].git_in(&folder, &["rev-list", "--first-parent", "--reverse", tip]);
        let id = |commit: &str| {
            let meta = self.people[0].git_in(&folder, &["show", &format!("{commit}:meta.yaml")]);
            let line = meta.lines().find(|line| line.starts_with("turn_id: "));
            line.unwrap().to_owned()
        };
        commits.lines().map(id).collect()
    }

    /// Checks that the fetched refs are the server's, and valid.
    fn check_fetched(&self, who: usize, prune: bool) {
        let server = self.server();
        let mut expected = BTreeMap::new();
        for (reference, id) in &server {
            let session = reference.rsplit('/').next().unwrap();
            expected.insert(format!("refs/teddy/remotes/origin/{session}"), id.clone());
        }
        let mut here = self.refs(who, "refs/teddy/remotes");
        if !prune {
            here.retain(|name, _| expected.contains_key(name));
        }
        assert_eq!(here, expected);
        for name in expected.keys() {
            let name = name.trim_start_matches("refs/teddy/remotes/");
            self.people[who].done(&["verify", name]);
        }
    }
}

fn listed(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .map(|(name, id)| (name.to_owned(), id.to_owned()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: seeds(1, 4).count() as u32, max_shrink_iters: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sessions_travel_and_nothing_is_overwritten(steps in proptest::collection::vec(step(), 6..16)) {
        let (ada, ben) = two_people();
        let mut world = World { people: [ada, ben], turns: 0 };
        for step in &steps {
            world.take(step);
        }
    }
}
