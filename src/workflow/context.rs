//! The context lists, as a user edits and sees them.

use std::path::Path;

use crate::host::file::{Mode, Root};
use crate::session::artifact;
use crate::session::input::{Material, Scope};
use crate::session::store::Draft;
use crate::session::turn::Turn;
use crate::text::context_list;
use crate::workflow::gather::Sources;
use crate::workflow::lists::Entry;
use crate::workflow::lookup::GLOBAL;
use crate::workflow::plan::{Making, make_input};
use crate::workflow::project::Project;
use crate::workflow::user::User;

/// A change of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// Entries join.
    Add,
    /// Entries leave.
    Remove,
}

impl Project {
    /// Makes the next input and keeps it in the draft.
    ///
    /// # Errors
    /// Where there is no session, or the repository cannot be read or written.
    pub fn make_context(&self, depth: u64, user: &mut dyn User) -> anyhow::Result<String> {
        let session = self.session()?;
        let _session_lock = self.lock_session(&session, "context")?;
        self.recover_now(user)?;
        let tip = self.store().tip(&session)?;
        let mut draft = self.store().draft(&tip)?;
        let recorded = self.record_locked(&tip, user)?;
        let lists = self.lists(&draft)?;
        let mut pages = self.pages_of(&tip, &draft)?;
        let text = make_input(
            self,
            &Making {
                tip: &tip,
                lists: &lists,
                recorded: &recorded,
                depth,
            },
            &mut pages,
            user,
        )?
        .text;
        if !draft.is_planned() {
            pages.keep_in(&mut draft.artifacts);
            draft.artifacts.put(artifact::INPUT, text.as_str());
            self.store().save_draft(&tip, &mut draft)?;
        }
        Ok(text)
    }

    /// Returns what the next input would show, with tokens.
    ///
    /// # Errors
    /// As for [`Project::make_context`].
    pub fn list_context(&self, depth: u64) -> anyhow::Result<Material> {
        let tip = self.store().tip(&self.session()?)?;
        let draft = self.store().draft(&tip)?;
        let lists = self.lists(&draft)?;
        let tree = self.snapshot(&[])?.tree;
        let mut pages = self.pages_of(&tip, &draft)?;
        self.gather(
            &Sources {
                tree,
                tip: &tip,
                lists: &lists,
                depth,
            },
            &mut |url| pages.get(url),
        )
    }

    /// Adds entries to a list, or takes them out; returns those that changed it.
    ///
    /// # Errors
    /// Where an entry is no resource, or the list cannot be written.
    pub fn edit_context(
        &self,
        scope: Scope,
        edit: Edit,
        entries: &[String],
        user: &mut dyn User,
    ) -> anyhow::Result<Vec<String>> {
        for entry in entries {
            if let Entry::Wrong(text, why) = Entry::parse(entry) {
                anyhow::bail!(
                    "`{}` cannot be in a context list: {why}",
                    crate::text::visible::visible(&text)
                );
            }
        }
        let mut changed = Vec::new();
        self.change_list(scope, user, &mut |text| {
            let (after, entries) = apply(text, edit, entries);
            changed = entries;
            Ok(after)
        })?;
        Ok(changed)
    }

    /// Replaces the text of a list, `before` until now.
    ///
    /// # Errors
    /// Where somebody has changed the list meanwhile, or it cannot be written.
    pub fn write_context(
        &self,
        scope: Scope,
        (before, text): (&str, &str),
        user: &mut dyn User,
    ) -> anyhow::Result<()> {
        self.change_list(scope, user, &mut |now| {
            anyhow::ensure!(now == before, "the list was changed by somebody else meanwhile, and is left as it is; your text was:\n{text}");
            Ok(text.to_owned())
        })
    }

    /// Returns the text of a list.
    ///
    /// # Errors
    /// Where the repository cannot be read.
    pub fn read_context(&self, scope: Scope) -> anyhow::Result<String> {
        if scope == Scope::Global {
            return self.whole_global_context(&Root::open(self.repository.workdir())?);
        }
        let tip = self.store().tip(&self.session()?)?;
        Ok(self
            .store()
            .draft(&tip)?
            .artifacts
            .text_or_empty(file(scope)))
    }

    /// Changes a list where it is kept: the draft, or the workspace for the one of every session.
    fn change_list(
        &self,
        scope: Scope,
        user: &mut dyn User,
        change: &mut dyn FnMut(&str) -> anyhow::Result<String>,
    ) -> anyhow::Result<()> {
        if scope == Scope::Global {
            let root = Root::open(self.repository.workdir())?;
            let (path, after) = (
                Path::new(GLOBAL),
                change(&self.whole_global_context(&root)?)?,
            );
            match root.kind(path)? {
                None => root.create_new(path, after.as_bytes(), Mode::Plain)?,
                Some(_) => root.replace(path, after.as_bytes())?,
            }
            return Ok(());
        }
        let session = self.session()?;
        let _session_lock = self.lock_session(&session, "context")?;
        self.recover_now(user)?;
        let tip: Turn = self.store().tip(&session)?;
        let mut draft: Draft = self.store().draft(&tip)?;
        let after = change(&draft.artifacts.text_or_empty(file(scope)))?;
        draft.artifacts.put(file(scope), after);
        self.store().save_draft(&tip, &mut draft)
    }
}

/// Returns the artifact of a list.
fn file(scope: Scope) -> &'static str {
    if scope == Scope::Session {
        artifact::SESSION_CONTEXT
    } else {
        artifact::TURN_CONTEXT
    }
}

/// Applies a change to the text of a list; comments and order stay.
fn apply(text: &str, edit: Edit, entries: &[String]) -> (String, Vec<String>) {
    let key = |entry: &str| match Entry::parse(entry.trim()) {
        Entry::Resource(resource) => resource.to_string(),
        _ => entry.trim().to_owned(),
    };
    let there: Vec<String> = context_list::entries(text).map(key).collect();
    match edit {
        Edit::Add => {
            let mut new: Vec<String> = Vec::new();
            for entry in entries.iter().map(|entry| key(entry)) {
                if !there.contains(&entry) && !new.contains(&entry) {
                    new.push(entry);
                }
            }
            let end = if text.is_empty() || text.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            let added: String = new.iter().map(|entry| format!("{entry}\n")).collect();
            (format!("{text}{end}{added}"), new)
        }
        Edit::Remove => {
            let gone: Vec<String> = entries
                .iter()
                .map(|entry| key(entry))
                .filter(|entry| there.contains(entry))
                .collect();
            let stays =
                |line: &&str| line.trim_start().starts_with('#') || !gone.contains(&key(line));
            (text.split_inclusive('\n').filter(stays).collect(), gone)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares a list after a change.
    fn check(text: &str, edit: Edit, entry: &str, expected: &str) {
        assert_eq!(apply(text, edit, &[entry.to_owned()]).0, expected);
    }

    #[test]
    fn an_entry_joins_once_however_it_is_spelled() {
        check("# mine\na.rs", Edit::Add, "b.rs", "# mine\na.rs\nb.rs\n");
        check("a.rs\n", Edit::Add, "./a.rs", "a.rs\n");
    }

    #[test]
    fn comments_stay_when_an_entry_leaves() {
        check(
            "# a.rs\n/a.rs\nb.rs\n",
            Edit::Remove,
            "a.rs",
            "# a.rs\nb.rs\n",
        );
    }
}
