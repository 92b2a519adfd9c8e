//! Landing and the care of a repository, in the test's own process.

use serde_json::Value;
use teddy::ui::notice;
use teddy::workflow::gc::{GcOptions, gc};
use teddy::workflow::land::{LandOptions, land};

use super::in_process::{Reply, Workflow, show_paths};

impl Workflow<'_> {
    /// Commits what turns did to a branch of the user's.
    pub fn land(&self, options: &LandOptions) -> Reply {
        self.call(|project, user, out| {
            let result = land(project, options, user)?;
            if let Some(turn) = result.overlapping {
                writeln!(out, "turn {turn} overlaps with {}", result.branch)?;
            }
            for commit in &result.commits {
                writeln!(out, "landed {:?}: {}", commit.turns, commit.title)?;
                show_paths(out, &[("commit", &commit.files)])?;
            }
            for file in &result.lacking {
                writeln!(out, "  lacks turn {}: {}", file.turn, file.path)?;
            }
            show_paths(
                out,
                &[
                    ("overlap", &result.overlaps),
                    ("made by a command", &result.by_commands),
                    ("formatted", &result.formatted),
                    ("staged", &result.staged),
                    ("ignored", &result.ignored),
                    ("repository", &result.repositories),
                ],
            )?;
            for obstacle in &result.obstacles {
                writeln!(out, "  {}", notice::obstacle(obstacle))?;
            }
            Ok(result.overlaps.is_empty() && result.lacking.is_empty())
        })
    }

    /// Lands and returns the result, as `land --json` has it without the notes. Overlaps are in it.
    #[track_caller]
    pub fn landed(&self, options: &LandOptions) -> Value {
        let mut result = Value::Null;
        self.call(|project, user, _| {
            result = serde_json::to_value(land(project, options, user)?)?;
            Ok(true)
        })
        .done();
        result
    }

    /// Frees disk space and deletes the named sessions, as `gc -y` does.
    pub fn gc(&self, options: &GcOptions) -> Reply {
        self.call(|project, user, out| {
            let result = gc(project, options, user)?;
            show_paths(
                out,
                &[
                    ("delete session", &result.sessions),
                    ("remove worktree of", &result.worktrees),
                    ("remove checkout", &result.checkouts),
                    ("held by", &result.held_by),
                ],
            )?;
            let (files, snapshots) = (result.undo_files, result.snapshots);
            writeln!(out, "{files} undo files, {snapshots} snapshots")?;
            Ok(true)
        })
    }
}
