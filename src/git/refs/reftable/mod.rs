//! Stores refs in a reftable, through git, because gix cannot read the format.
//!
//! A git process costs milliseconds, and a turn reads refs some thirty times. So HEAD and TeDDy's
//! refs are read with one process and cached until `tables.list` changes: tables are immutable, so
//! the same list means the same refs.

mod program;
mod repair;
mod tables;
mod transaction;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use gix::ObjectId;
use gix::bstr::{BStr, ByteSlice as _};
use gix::refs::{FullName, Target};

use self::tables::TableLists;
use super::store::{
    All, Expected, HeadTarget, MoveError, RefMove, RefStore, Reference, TEDDY_PREFIX,
};
use crate::git::During as _;
use crate::git::object::absent;
use crate::git::object::id::CommitId;

const ROW_FORMAT: &str = "--format=%(refname)%00%(objectname)%00%(symref)";

type Row = (FullName, ObjectId, Option<FullName>);

pub(in crate::git) struct Reftable {
    /// Reads objects, never refs.
    gix: gix::Repository,
    common: PathBuf,
    /// The git directory of this worktree, canonical.
    own: PathBuf,
    cached: RefCell<Option<Arc<TableRefs>>>,
    /// Tables that were flushed already.
    flushed: RefCell<BTreeSet<String>>,
}

/// HEAD and TeDDy's refs at one state of the tables.
#[derive(Clone)]
struct TableRefs {
    /// Lists of tables, read before the refs.
    lists: TableLists,
    head: HeadTarget,
    /// Refs that are not symbolic.
    refs: BTreeMap<String, ObjectId>,
}

impl Reftable {
    pub(in crate::git) fn of(gix: gix::Repository, common: PathBuf) -> Reftable {
        let own = gix.git_dir();
        let own = own.canonicalize().unwrap_or_else(|_| own.to_owned());
        Reftable {
            gix,
            common,
            own,
            cached: RefCell::new(None),
            flushed: RefCell::default(),
        }
    }

    /// Returns the current refs, from the cache if the tables did not change.
    fn load(&self) -> anyhow::Result<Arc<TableRefs>> {
        // Read before the refs: if the tables change in between, the cache merely seems outdated.
        let lists = TableLists::read(&self.common, &self.own)?;
        if let Some(cached) = &*self.cached.borrow()
            && cached.lists == lists
        {
            return Ok(Arc::clone(cached));
        }

        // git reads a table that power loss emptied as one without refs.
        let lists = lists.validate(&self.common, &self.own)?;

        let mut table_refs = TableRefs {
            lists,
            head: HeadTarget::default(),
            refs: BTreeMap::new(),
        };
        for (name, id, target) in self.listed(&["--include-root-refs", "HEAD", TEDDY_PREFIX])? {
            if name.as_bstr() == "HEAD" {
                table_refs.head = HeadTarget {
                    branch: target,
                    commit: Some(CommitId(id)),
                };
            } else if target.is_none() {
                table_refs.refs.insert(name.as_bstr().to_string(), id);
            }
        }

        // `for-each-ref` omits an unborn HEAD.
        if table_refs.head.commit.is_none() {
            table_refs.head.branch = Some(self.unborn()?);
        }

        let table_refs = Arc::new(table_refs);
        *self.cached.borrow_mut() = Some(Arc::clone(&table_refs));
        Ok(table_refs)
    }

    /// Updates the cache after a transaction of ours, if it is the only one since the tables were
    /// read. Otherwise the next read asks git.
    fn note<'a>(&self, changes: impl IntoIterator<Item = (&'a str, Option<ObjectId>)>) {
        let mut cached = self.cached.borrow_mut();
        let (Some(table_refs), Ok(now)) =
            (cached.as_mut(), TableLists::read(&self.common, &self.own))
        else {
            return;
        };
        // Another process updated refs too.
        if !now.is_next_of(&table_refs.lists) {
            return;
        }

        let table_refs = Arc::make_mut(table_refs);
        table_refs.lists = now;
        for (name, id) in changes {
            match id {
                Some(id) if name.starts_with(TEDDY_PREFIX) => {
                    table_refs.refs.insert(name.to_owned(), id)
                }
                _ => table_refs.refs.remove(name),
            };
        }
    }

    fn unborn(&self) -> anyhow::Result<FullName> {
        let name = self
            .run_git(&["symbolic-ref", "HEAD"])
            .context("reading HEAD")?;
        full_name(name.trim_end().as_bstr()).context("reading HEAD")
    }

    fn listed(&self, patterns: &[&str]) -> anyhow::Result<Vec<Row>> {
        let args = [&["for-each-ref", ROW_FORMAT], patterns].concat();
        let text = self.run_git(&args).context("listing refs")?;
        text.lines().map(|line| row(line.as_bstr())).collect()
    }

    fn row_of(&self, name: &str) -> anyhow::Result<Option<Row>> {
        let mut rows = self.listed(&["--include-root-refs", name])?.into_iter();
        Ok(rows.find(|(row_name, ..)| row_name.as_bstr() == name))
    }

    fn flush(&self) -> anyhow::Result<()> {
        tables::flush(&self.common, &mut self.flushed.borrow_mut())
    }

    fn peeled(&self, id: ObjectId, label: &str) -> anyhow::Result<CommitId> {
        let object =
            absent::find(|| self.gix.find_object(id)).during(format_args!("reading `{label}`"))?;
        let commit = object
            .peel_to_commit()
            .during(format_args!("`{label}` is not a commit"))?;
        Ok(CommitId(commit.id))
    }
}

impl RefStore for Reftable {
    fn read(&self, name: &str) -> anyhow::Result<Option<CommitId>> {
        let id = if name.starts_with(TEDDY_PREFIX) {
            self.load()?.refs.get(name).copied()
        } else {
            self.row_of(name)?.map(|(_, id, _)| id)
        };
        id.map(|id| self.peeled(id, name)).transpose()
    }

    fn read_unpeeled(&self, name: &str) -> anyhow::Result<Option<CommitId>> {
        let id = if name.starts_with(TEDDY_PREFIX) {
            self.load()?.refs.get(name).copied()
        } else {
            let direct = self.row_of(name)?.filter(|(.., target)| target.is_none());
            direct.map(|(_, id, _)| id)
        };
        Ok(id.map(CommitId))
    }

    fn list(&self, prefix: &str) -> anyhow::Result<Vec<Reference>> {
        let reference = |name: String, id| Reference {
            name,
            target: CommitId(id),
        };
        if prefix.starts_with(TEDDY_PREFIX) {
            let table_refs = self.load()?;
            let from_here = table_refs.refs.range(prefix.to_owned()..);
            let matching = from_here.take_while(|(name, _)| name.starts_with(prefix));
            return Ok(matching
                .map(|(name, id)| reference(name.clone(), *id))
                .collect());
        }

        let direct = self.listed(&[prefix])?.into_iter();
        let direct = direct.filter(|(.., target)| target.is_none());
        Ok(direct
            .map(|(name, id, _)| reference(name.as_bstr().to_string(), id))
            .collect())
    }

    fn all(&self) -> anyhow::Result<All> {
        let listed = self.listed(&[])?.into_iter();
        let refs = listed.map(|(name, id, target)| {
            let target = target.map_or(Target::Object(id), Target::Symbolic);
            (name, target)
        });
        Ok(All {
            refs: refs.collect(),
            damaged: 0,
        })
    }

    fn head(&self) -> anyhow::Result<HeadTarget> {
        Ok(self.load()?.head.clone())
    }

    fn resolve(&self, expression: &str) -> anyhow::Result<CommitId> {
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options"];
        let id = self
            .run_git(&[&args[..], &[expression]].concat())
            .ok()
            .and_then(|text| ObjectId::from_hex(text.trim_end()).ok())
            .with_context(|| format!("`{expression}` names no commit"))?;
        self.peeled(id, expression)
    }

    fn apply(&self, moves: &[RefMove<'_>], log: &str) -> Result<(), MoveError> {
        let script = transaction::move_script(moves)?;
        let Err(error) = transaction::transact(self, &script, log) else {
            self.note(
                moves
                    .iter()
                    .map(|ref_move| (ref_move.name, Some(ref_move.to.into()))),
            );
            return Ok(());
        };

        for ref_move in moves {
            let now = self.read_unpeeled(ref_move.name)?;
            if !ref_move.expected.is_met(now) {
                return Err(MoveError::Moved {
                    name: ref_move.name.to_owned(),
                });
            }
        }

        let names: Vec<_> = moves
            .iter()
            .map(|ref_move| format!("`{}`", ref_move.name))
            .collect();
        let names = names.join(", ");
        Err(error.context(format!("cannot write {names}")).into())
    }

    fn delete_all(&self, names: &[&str]) -> anyhow::Result<()> {
        let script = transaction::deleting_all(names)?;
        transaction::transact(self, &script, "teddy: delete").context("cannot delete refs")?;
        self.note(names.iter().map(|name| (*name, None)));
        Ok(())
    }

    fn delete(&self, name: &str, expected: Expected) -> Result<(), MoveError> {
        let script = transaction::delete_script(name, expected)?;
        let Err(error) = transaction::transact(self, &script, "teddy: delete") else {
            self.note([(name, None)]);
            return Ok(());
        };

        if !expected.is_met(self.read_unpeeled(name).ok().flatten()) {
            return Err(MoveError::Moved {
                name: name.to_owned(),
            });
        }

        Err(error.context(format!("cannot delete `{name}`")).into())
    }

    /// Same as a deletion: all refs share one lock anyway.
    fn discard(&self, name: &str) -> anyhow::Result<bool> {
        self.delete(name, Expected::Any)?;
        Ok(true)
    }

    /// Flushes the names of the tables and of their list. Their content was flushed by the update.
    fn sync(&self, name: &str) -> anyhow::Result<()> {
        for dir in [tables::tables_dir(&self.common), self.common.clone()] {
            File::open(dir)
                .and_then(|dir| dir.sync_all())
                .with_context(|| format!("making `{name}` durable"))?;
        }
        Ok(())
    }

    fn logged(&self, name: &str) -> anyhow::Result<Vec<CommitId>> {
        let entries = self.log_of(name)?;
        Ok(entries.into_iter().filter_map(|(_, id)| id).collect())
    }

    /// Always empty: a ref in a table has an id, or the whole table is damaged. Also flushes all
    /// tables, because the user's git does not and power loss would take every ref.
    fn damaged(&self) -> anyhow::Result<Vec<String>> {
        self.load()?;
        self.flush()?;
        Ok(Vec::new())
    }

    fn repair(
        &self,
        name: &str,
        commit: Option<CommitId>,
        backup_dir: &Path,
        is_there: &dyn Fn(CommitId) -> bool,
    ) -> anyhow::Result<()> {
        self.back_up(name, backup_dir)?;
        let Some(to) = commit else {
            return Ok(self.delete(name, Expected::Any)?);
        };
        let expected = Expected::Any;
        self.apply(&[RefMove { name, expected, to }], "teddy: repair")?;
        self.trim_log(name, is_there)
    }

    fn remove_stale_locks(&self, _: &dyn Fn(&str) -> bool) -> anyhow::Result<Vec<String>> {
        self.unlock_stale()
    }

    fn locks(&self) -> Vec<PathBuf> {
        vec![tables::lock(&self.common), tables::lock(&self.own)]
    }

    fn users(&self) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
        let head = self.load()?.head.clone();
        let head = match (head.branch, head.commit) {
            (Some(name), _) => format!("ref: {name}"),
            (None, commit) => commit.map(|id| id.to_string()).unwrap_or_default(),
        };
        let mut parts = vec![("HEAD".to_owned(), head.into_bytes())];

        // Fails if there is no stash.
        let stash = self.run_git(&["reflog", "show", "--format=%H", "refs/stash", "--"]);
        parts.extend(stash.ok().map(|log| ("logs/refs/stash".to_owned(), log)));
        Ok(parts)
    }
}

fn row(line: &BStr) -> anyhow::Result<Row> {
    let mut fields = line.split_str(b"\0");
    let mut next = || fields.next().unwrap_or_default();
    let (name, id, target) = (next(), next(), next());
    let target = (!target.is_empty()).then(|| full_name(target.as_bstr()));
    let id = ObjectId::from_hex(id)
        .map_err(|error| anyhow::anyhow!("{error}").context(format!("the ref `{line}`")))?;
    Ok((full_name(name.as_bstr())?, id, target.transpose()?))
}

fn full_name(name: &BStr) -> anyhow::Result<FullName> {
    FullName::try_from(name)
        .map_err(|error| anyhow::anyhow!("{error}").context(format!("the ref name `{name}`")))
}
