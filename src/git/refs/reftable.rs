//! Stores refs in a reftable, through git, because gix cannot read the format.
//!
//! A git process costs milliseconds, and a turn reads refs some thirty times. So HEAD and TeDDy's
//! refs are read with one process and cached until `tables.list` changes: tables are immutable, so
//! the same list means the same refs.

mod tables;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use gix::ObjectId;
use gix::bstr::{BStr, ByteSlice as _};
use gix::refs::{FullName, Target};

use self::tables::TableLists;

use super::store::{All, Expected, HeadTarget, MoveError, RefMove, RefStore, TEDDY_PREFIX};
use crate::git::During as _;
use crate::git::command::git_in;
use crate::git::object::absent;
use crate::git::object::id::CommitId;
use crate::git::refs::store::{RefsLocked, free_backup_file, is_stale_lock};
use crate::host::file::{make_dirs, sync_open_file, write_atomic};
use crate::host::helper::run_for_answer;
use crate::host::lock::{Lock, patience};
use crate::host::{clock, machine};

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

    /// Returns the id of a ref, and the ref that it names if it is symbolic.
    fn target(&self, name: &str) -> anyhow::Result<Option<(ObjectId, Option<FullName>)>> {
        if name.starts_with(TEDDY_PREFIX) {
            return Ok(self.load()?.refs.get(name).map(|id| (*id, None)));
        }
        let mut rows = self.listed(&["--include-root-refs", name])?.into_iter();
        let row = rows.find(|(row_name, ..)| row_name.as_bstr() == name);
        Ok(row.map(|(_, id, target)| (id, target)))
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
        let target = self.target(name)?;
        target.map(|(id, _)| self.peeled(id, name)).transpose()
    }

    fn read_unpeeled(&self, name: &str) -> anyhow::Result<Option<CommitId>> {
        let direct = self
            .target(name)?
            .filter(|(_, symbolic)| symbolic.is_none());
        Ok(direct.map(|(id, _)| CommitId(id)))
    }

    fn all(&self, prefix: &str) -> anyhow::Result<All> {
        let refs = if prefix.starts_with(TEDDY_PREFIX) {
            let table_refs = self.load()?;
            let from_here = table_refs.refs.range(prefix.to_owned()..);
            let matching = from_here.take_while(|(name, _)| name.starts_with(prefix));
            let refs = matching.map(|(name, id)| {
                let name = full_name(name.as_bytes().as_bstr())?;
                Ok((name, Target::Object(*id)))
            });
            refs.collect::<anyhow::Result<_>>()?
        } else {
            let listed = self.listed(&[prefix])?.into_iter();
            let refs = listed.map(|(name, id, target)| {
                let target = target.map_or(Target::Object(id), Target::Symbolic);
                (name, target)
            });
            refs.collect()
        };
        Ok(All { refs, damaged: 0 })
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
        let script = move_script(moves)?;
        let Err(error) = transact(self, &script, log) else {
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

    fn delete(&self, names: &[&str], expected: Expected) -> Result<(), MoveError> {
        let script = delete_script(names, expected)?;
        if let Err(error) = transact(self, &script, "teddy: delete") {
            return Err(self.delete_error(names, expected, error));
        }
        self.note(names.iter().map(|name| (*name, None)));
        Ok(())
    }

    /// Same as a deletion: all refs share one lock anyway.
    fn discard(&self, name: &str) -> anyhow::Result<bool> {
        self.delete(&[name], Expected::Any)?;
        Ok(true)
    }

    /// Flushes the names of the tables and of their list. Their content was flushed by the update.
    fn sync(&self, name: &str) -> anyhow::Result<()> {
        for dir in [tables::tables_dir(&self.common), self.common.clone()] {
            File::open(dir)
                .and_then(|dir| sync_open_file(&dir))
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
            return Ok(self.delete(&[name], Expected::Any)?);
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

/// Part of git's message if it does not know the format.
const UNKNOWN_FORMAT: &str = "unknown repository extension";

impl Reftable {
    fn git(&self) -> anyhow::Result<Command> {
        let mut command = git_in(&self.own)?;
        command.arg("--git-dir").arg(&self.own);
        Ok(command)
    }

    fn run_git(&self, args: &[&str]) -> anyhow::Result<Vec<u8>> {
        let output = self.git()?.args(args).output().context("starting git")?;
        let name = args.first().copied().unwrap_or_default();
        if output.status.success() {
            return Ok(output.stdout);
        }

        let stderr = String::from_utf8_lossy(&output.stderr);
        let is_old = stderr.contains(UNKNOWN_FORMAT);
        let hint = if is_old {
            "; a reftable needs git 2.45 or newer"
        } else {
            ""
        };

        anyhow::bail!("git {name} failed: {}{hint}", stderr.trim());
    }
}

// Updates refs in one transaction of `git update-ref`.
//
// All refs share one lock file, `tables.list.lock`. If git is killed, the file stays, and neither
// TeDDy nor the user's git can update any ref. So TeDDy also holds a lock of its own, which git
// inherits. If that lock was abandoned, no git of ours is running, and a remaining
// `tables.list.lock` is ours to remove.

const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

const LOCK_POLL: Duration = Duration::from_millis(10);

/// Parts of git's messages if another process has the lock or won the race.
const LOCKED_MESSAGES: [&str; 3] = [
    "cannot lock references",
    "data is locked",
    "data concurrently modified",
];

/// Settings for git: flush tables before they are listed; wait for the lock (since git 2.48).
const UPDATE_SETTINGS: [&str; 3] = [
    "core.fsync=reference",
    "core.fsyncMethod=fsync",
    "reftable.lockTimeout=2000",
];

fn transact(refs: &Reftable, script: &[u8], log: &str) -> anyhow::Result<()> {
    let refs_lock = Lock::take_uninterrupted(&lock_dir(refs), "moving refs", patience())?;
    // The previous holder was killed, so a lock that git left is stale.
    if refs_lock.holder_crashed {
        refs.unlock()?;
    }

    // Tables of the user's git are possibly not flushed, and the new list will name them too.
    refs.flush()?;

    let started = Instant::now();
    loop {
        let output = spawn_update_ref(refs, script, log, &refs_lock)?.wait_with_output();
        let output = output.context("waiting for git update-ref")?;
        if output.status.success() {
            // Despite `core.fsync`: git 2.47 writes the footer after it has flushed the table.
            return refs.flush();
        }

        let stderr = String::from_utf8_lossy(&output.stderr);
        let is_locked = LOCKED_MESSAGES.iter().any(|part| stderr.contains(part));
        if is_locked && started.elapsed() < LOCK_TIMEOUT {
            std::thread::sleep(LOCK_POLL);
            continue;
        }

        let lock = tables::lock(&refs.common);
        if is_locked && lock.exists() {
            return Err(RefsLocked { lock }.into());
        }

        anyhow::bail!("git update-ref failed: {}", stderr.trim());
    }
}

fn spawn_update_ref(
    refs: &Reftable,
    script: &[u8],
    log: &str,
    lock: &Lock,
) -> anyhow::Result<Child> {
    let mut command = refs.git()?;
    let seconds = clock::now().timestamp().as_second();
    command
        .env("GIT_COMMITTER_NAME", "TeDDy")
        .env("GIT_COMMITTER_EMAIL", "teddy@localhost")
        // git's own clock does not know `TEDDY_NOW`.
        .env("GIT_COMMITTER_DATE", format!("@{seconds} +0000"));
    for setting in UPDATE_SETTINGS {
        command.args(["-c", setting]);
    }

    command.args(["update-ref", "--stdin", "-z", "--create-reflog", "-m", log]);
    command
        .stdin(Stdio::piped())
        // git keeps our lock held until it ends, even if this process is killed.
        .stdout(lock.share().context("sharing the lock of the refs")?)
        .stderr(Stdio::piped())
        // Ctrl-c must not stop git between two refs; this process decides when to stop.
        .process_group(0);
    let mut child = command.spawn().context("starting git update-ref")?;

    if let Some(mut stdin) = child.stdin.take() {
        // git stops reading at an invalid command and reports it.
        let _ = stdin.write_all(script);
    }

    Ok(child)
}

fn lock_dir(refs: &Reftable) -> PathBuf {
    refs.common.join("teddy").join("refs")
}

fn move_script(moves: &[RefMove<'_>]) -> anyhow::Result<Vec<u8>> {
    let mut orders = String::new();
    for RefMove { name, expected, to } in moves {
        full_name(name.as_bytes().as_bstr())?;
        let order = match expected {
            Expected::Absent => format!("create {name}\0{to}\0"),
            Expected::At(old) => format!("update {name}\0{to}\0{old}\0"),
            Expected::Any => format!("update {name}\0{to}\0\0"),
        };
        orders.push_str("option no-deref\0");

        orders.push_str(&order);
    }

    Ok(wrap_transaction(&orders))
}

fn delete_script(names: &[&str], expected: Expected) -> anyhow::Result<Vec<u8>> {
    let old = match expected {
        Expected::At(old) => old.to_string(),
        Expected::Absent | Expected::Any => String::new(),
    };
    let mut orders = String::new();
    for name in names {
        full_name(name.as_bytes().as_bstr())?;
        orders.push_str(&format!("option no-deref\0delete {name}\0{old}\0"));
    }
    Ok(wrap_transaction(&orders))
}

fn wrap_transaction(orders: &str) -> Vec<u8> {
    format!("start\0{orders}prepare\0commit\0").into_bytes()
}

const MAX_LOG_LINES: usize = 50;

const MAX_LOG_TIME: Duration = Duration::from_secs(60);

impl Reftable {
    /// Returns the newest lines of a ref's log, newest first: their index, and their commit if that
    /// exists.
    fn log_of(&self, name: &str) -> anyhow::Result<Vec<(usize, Option<CommitId>)>> {
        let queries: String = (0..MAX_LOG_LINES)
            .map(|number| format!("{name}@{{{number}}}\n"))
            .collect();
        let mut git = self.git()?;
        git.args(["cat-file", "--batch-check=%(objectname)"]);
        let answer = run_for_answer(&mut git, queries.as_bytes(), MAX_LOG_TIME);
        // git prints nothing for indexes beyond the end of the log, and fails.
        let output = answer.context("reading a log of refs")?.stdout;
        let output = String::from_utf8_lossy(&output);
        let ids = output.lines().map(|line| line.parse().ok());
        Ok(ids.enumerate().collect())
    }

    fn back_up(&self, name: &str, backup_dir: &Path) -> anyhow::Result<()> {
        let now = self.load()?.refs.get(name).copied();
        let mut text = now.map(|id| format!("{id}\n")).unwrap_or_default();
        for id in self.log_of(name)?.into_iter().filter_map(|(_, id)| id) {
            text.push_str(&format!("{id}\n"));
        }

        make_dirs(backup_dir)?;
        write_atomic(&free_backup_file(backup_dir, name), text.as_bytes())
            .with_context(|| format!("keeping what `{name}` was"))
    }

    /// Removes lines from a ref's log that name missing commits, because `git fsck` would report
    /// them forever.
    fn trim_log(&self, name: &str, is_there: &dyn Fn(CommitId) -> bool) -> anyhow::Result<()> {
        let log = self.log_of(name)?.into_iter().rev();
        let missing = log.filter(|(_, id)| !id.is_some_and(is_there));
        // Highest index first: deleting a line renumbers the later ones.
        let missing: Vec<_> = missing
            .map(|(number, _)| format!("{name}@{{{number}}}"))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }

        let args = ["reflog", "delete", "--rewrite"];
        let args = args.into_iter().chain(missing.iter().map(String::as_str));
        self.run_git(&args.collect::<Vec<_>>())
            .with_context(|| format!("writing the log of `{name}`"))?;
        Ok(())
    }

    /// Waits for a git process that survived its TeDDy, then removes `tables.list.lock` if one of
    /// our processes left it or it is older than the system start.
    fn unlock_stale(&self) -> anyhow::Result<Vec<String>> {
        let dir = lock_dir(self);
        let lock = tables::lock(&self.common);
        if !dir.join("lock").exists() {
            return Ok(Vec::new());
        }

        // Also waits for a git that outlived its TeDDy, because it inherited this lock.
        let refs_lock = Lock::take_uninterrupted(&dir, "removing locks", patience())?;
        if !refs_lock.holder_crashed && !predates_boot(&lock) {
            return Ok(Vec::new());
        }

        let is_removed = self.unlock()?;
        Ok(is_removed
            .then(|| "reftable/tables.list".to_owned())
            .into_iter()
            .collect())
    }

    /// Removes `tables.list.lock` if it stays unchanged for a moment. Returns `false` if it doesn't
    /// exist. The caller holds TeDDy's own lock of the refs.
    fn unlock(&self) -> anyhow::Result<bool> {
        let lock = tables::lock(&self.common);
        if !is_stale_lock(&lock) {
            return Ok(false);
        }
        std::fs::remove_file(&lock).with_context(|| format!("removing `{}`", lock.display()))?;
        Ok(true)
    }
}

/// Returns whether a file was written before the system started, so that its process cannot exist.
fn predates_boot(path: &Path) -> bool {
    let written = path
        .symlink_metadata()
        .and_then(|metadata| metadata.modified());
    let age = written.ok().and_then(|written| written.elapsed().ok());
    matches!((age, machine::uptime()), (Some(age), Some(up)) if age > up)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_says_what_each_ref_must_be() {
        let one = "1".repeat(40).parse().unwrap();
        let two = "2".repeat(40).parse().unwrap();
        let ref_move = |name, expected| RefMove {
            name,
            expected,
            to: two,
        };
        let moves = [
            ref_move("refs/teddy/a", Expected::Absent),
            ref_move("refs/teddy/b", Expected::At(one)),
            ref_move("refs/teddy/c", Expected::Any),
        ];
        let script = String::from_utf8(move_script(&moves).unwrap()).unwrap();
        let expected = format!(
            "start|option no-deref|create refs/teddy/a|{two}|option no-deref|update \
             refs/teddy/b|{two}|{one}|option no-deref|update refs/teddy/c|{two}||prepare|commit|"
        );
        assert_eq!(script.replace('\0', "|"), expected);
    }

    #[test]
    fn a_name_cannot_be_an_order() {
        let to = "1".repeat(40).parse().unwrap();
        for name in ["refs/teddy/a\0delete refs/heads/main", "refs/teddy/a b", ""] {
            let expected = Expected::Any;
            move_script(&[RefMove { name, expected, to }]).unwrap_err();
            delete_script(&[name], expected).unwrap_err();
        }
    }
}
