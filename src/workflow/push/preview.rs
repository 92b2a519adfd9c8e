//! Prepares the push of one session, and describes it for the user. Writes no objects.

use serde::Serialize;

use super::error::PushError;
use super::findings::{LeakFinding, LeakSearch};
use super::remote_state::{RemoteState, find_diverged};
use crate::config::settings::{PushMode, Settings};
use crate::git::object::batch::{Batch, begin_batch};
use crate::git::object::id::TagId;
use crate::git::object::{CommitId, read_signed_tag};
use crate::git::refs;
use crate::git::remote::RemoteName;
use crate::git::remote::missing_on_remote::{
    MissingCode, MissingOnRemote, count_missing, list_missing_code, paths_in_no_branch,
};
use crate::git::remote::transfer::{RefUpdate, SentRef};
use crate::git::repository::Repository;
use crate::project::Project;
use crate::session::bare::{Redaction, SessionCopy, bare_copy, bare_reference, redacted, turns_to};
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::leak::LeakKind;
use crate::text::path::lossy;

const MOST_FILES: usize = 20;

/// Compared with the remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PushState {
    New,
    /// The remote has a part of the session.
    Ahead,
    /// The remote has all of it.
    Current,
    /// The remote has all of it and more turns.
    Behind,
}

#[derive(Debug, Clone, Serialize)]
pub struct SessionPreview {
    pub session: SessionName,
    /// On the remote.
    #[serde(rename = "as")]
    pub target: SessionName,
    pub mode: PushMode,
    /// On the remote.
    #[serde(rename = "ref")]
    pub reference: String,
    pub state: PushState,
    /// Current value of the ref.
    pub from: Option<CommitId>,
    pub to: CommitId,
    /// Number of the newest turn.
    pub turns: u64,
    pub new_turns: u64,
    pub redacted: Vec<LeakKind>,
    pub redactions: usize,
    #[serde(flatten)]
    pub lacking: MissingOnRemote,
    /// In no branch of the remote.
    pub files: Vec<String>,
    pub more_files: usize,
    /// The bare session that is deleted, because the code replaces it.
    pub replaces: Option<String>,
    pub signed: bool,
    pub notes: Vec<String>,
}

impl SessionPreview {
    pub fn is_sent(&self) -> bool {
        matches!(self.state, PushState::New | PushState::Ahead)
    }

    fn name_files(&mut self, paths: &[&[u8]]) {
        self.more_files = paths.len().saturating_sub(MOST_FILES);
        self.files = paths
            .iter()
            .take(MOST_FILES)
            .map(|path| lossy(path))
            .collect();
    }
}

pub struct PreparedSession<'a> {
    pub preview: SessionPreview,
    pub findings: Vec<LeakFinding>,
    /// On the remote.
    pub updates: Vec<RefUpdate>,
    /// With the objects that only the copy has; not written yet.
    pub copy: Option<(SessionCopy, Batch<'a>)>,
}

impl PreparedSession<'_> {
    fn send_as(&mut self, reference: String) {
        if self.preview.is_sent() {
            let to = SentRef::Object(self.preview.to);
            let name = reference.clone();
            self.updates.push(RefUpdate { name, to });
        }
        self.preview.reference = reference;
    }

    /// A signature covers the session's name, so it is not pushed under another one. The remote's
    /// signature is replaced only by one of a later turn.
    fn add_signature(
        &mut self,
        repository: &Repository,
        own: &[CommitId],
        remote_tag: Option<CommitId>,
    ) -> anyhow::Result<()> {
        let SessionPreview {
            session, target, ..
        } = &self.preview;
        let Some(tag) = refs::read_unpeeled(repository, &session.signed_reference())? else {
            return Ok(());
        };
        let turn_of = |tag: CommitId| {
            let commit = read_signed_tag(repository, TagId::of(tag)).ok()?.commit;
            own.iter().position(|id| *id == commit)
        };
        let turn = turn_of(tag);
        let why = match remote_tag {
            _ if target != session => "the signature is for another name and stays here",
            _ if turn.is_none() => "the signature is not of a turn of this session and stays here",
            Some(remote) if remote == tag => return Ok(()),
            Some(remote) if turn_of(remote).is_none_or(|position| Some(position) > turn) => {
                "the remote has another signature, which stays there"
            }
            _ => {
                let (name, to) = (target.signed_reference(), SentRef::Object(tag));
                self.updates.push(RefUpdate { name, to });
                self.preview.signed = true;
                return Ok(());
            }
        };
        self.preview.notes.push(why.to_owned());
        Ok(())
    }
}

/// Prepares sessions for one remote.
pub struct Sender<'a, 'o> {
    pub project: &'a Project,
    pub remote: &'o RemoteName,
    /// Commits that the remote has.
    pub branches: Vec<CommitId>,
    pub options: &'o PushOptions,
    pub home: Option<String>,
    pub redact: Option<Vec<LeakKind>>,
}

impl<'a> Sender<'a, '_> {
    pub fn prepare(
        &self,
        session: &SessionName,
        remote_state: &RemoteState,
    ) -> anyhow::Result<PreparedSession<'a>> {
        let project = self.project;
        let tip = project.store().tip_id(session)?;
        let turns = turns_to(&project.repository, session, tip)?;
        let mode = self.options.mode;
        if mode == Some(PushMode::NoCode) && remote_state.code.is_some() {
            return Err(PushError::HasCode {
                remote: self.remote.clone(),
                name: self.target(session),
            }
            .into());
        }

        let usual = match remote_state.code {
            Some(_) => PushMode::Code,
            None => project.settings.push.mode.unwrap_or(PushMode::NoCode),
        };
        match mode.unwrap_or(usual) {
            PushMode::NoCode => self.prepare_bare(session, &turns, remote_state),
            PushMode::Code => self.prepare_code(session, &turns, remote_state),
        }
    }

    pub(super) fn target(&self, session: &SessionName) -> SessionName {
        self.options.target.as_ref().unwrap_or(session).clone()
    }

    fn prepare_bare(
        &self,
        session: &SessionName,
        turns: &[Turn],
        remote_state: &RemoteState,
    ) -> anyhow::Result<PreparedSession<'a>> {
        let reference = bare_reference(&self.target(session));
        let chosen = self.choose(turns, remote_state.bare)?;
        let own = chosen.copy.ids();
        let (state, base) = self.compare(session, &reference, remote_state.bare, &own)?;
        let first = base.map_or(0, |base| base + 1);
        let new = &turns[first.min(turns.len())..];

        let mut prepared = self.begin(session, turns, state, remote_state.bare, base)?;
        prepared.preview.mode = PushMode::NoCode;
        prepared.preview.to = own.last().copied().unwrap_or(prepared.preview.to);
        let redacted = chosen.redacted.as_deref();
        self.search(
            &mut prepared,
            turns,
            base,
            redacted,
            &MissingCode::default(),
        )?;

        let trees: Vec<String> = new.iter().map(|turn| turn.tree.to_string()).collect();
        // The remote has the trees of the newest common turn.
        let base_trees = base.map(|base| turns[base].tree.to_string());
        let base_trees: Vec<String> = base_trees.into_iter().collect();
        let files = count_missing(
            &self.project.repository,
            &self.branches,
            &trees,
            &base_trees,
        )?;
        prepared.preview.lacking = MissingOnRemote {
            objects: files.objects + new.len() as u64,
            bytes: files.bytes + chosen.copy.size_from(first),
        };
        if !new.is_empty() && redacted.is_none_or(|kinds| !kinds.contains(&LeakKind::Paths)) {
            let note = "the `input.md` of each turn names the project's directory";
            prepared.preview.notes.push(note.to_owned());
        }

        prepared.send_as(reference);
        prepared.copy = Some((chosen.copy, chosen.batch));
        Ok(prepared)
    }

    fn prepare_code(
        &self,
        session: &SessionName,
        turns: &[Turn],
        remote_state: &RemoteState,
    ) -> anyhow::Result<PreparedSession<'a>> {
        let repository = &self.project.repository;
        let target = self.target(session);
        let reference = target.reference();
        let own: Vec<CommitId> = turns.iter().map(|turn| turn.commit).collect();
        let chosen = self.choose_code(turns, remote_state)?;
        let redacted = chosen
            .as_ref()
            .and_then(|chosen| chosen.redacted.as_deref());
        let sent = match &chosen {
            Some(chosen) => chosen.copy.ids(),
            None => own.clone(),
        };
        let (state, base) = self.compare(session, &reference, remote_state.code, &sent)?;
        let replaced = self.replaced(session, turns, remote_state)?;
        let new = &turns[base.map_or(0, |base| base + 1)..];

        let mut prepared = self.begin(session, turns, state, remote_state.code, base)?;
        let base_commits: Vec<String> =
            base.map(|base| own[base].to_string()).into_iter().collect();
        let code = commits_of_code(new);
        let missing = list_missing_code(repository, &self.branches, &code, &base_commits)?;
        // The remote has the content of the bare session already.
        let common = replaced.as_ref().and_then(|(_, number)| *number);
        let tip = [prepared.preview.to.to_string()];
        prepared.preview.to = sent.last().copied().unwrap_or(prepared.preview.to);
        self.search(&mut prepared, turns, base.max(common), redacted, &missing)?;

        if prepared.preview.is_sent() {
            prepared.preview.lacking =
                count_missing(repository, &self.branches, &tip, &base_commits)?;
        }
        let paths = missing.files.iter().map(|file| file.path.as_slice());
        let unpublished = paths_in_no_branch(repository, &self.branches, paths)?;
        prepared.preview.name_files(&unpublished);

        prepared.send_as(reference);
        match chosen {
            // A signature is of the local turns.
            Some(chosen) => {
                let note = "files and commits are sent as they are; only what is recorded of the turns is redacted";
                prepared.preview.notes.push(note.to_owned());
                prepared.copy = Some((chosen.copy, chosen.batch));
            }
            None => prepared.add_signature(repository, &own, remote_state.signature)?,
        }
        if let Some((update, _)) = replaced {
            prepared.preview.replaces = Some(update.name.clone());
            prepared.updates.push(update);
        }
        Ok(prepared)
    }

    /// Deletes a bare session that the code replaces. Also returns the turn up to which it has the
    /// same content.
    fn replaced(
        &self,
        session: &SessionName,
        turns: &[Turn],
        remote_state: &RemoteState,
    ) -> anyhow::Result<Option<(RefUpdate, Option<usize>)>> {
        let Some(tip) = remote_state.bare else {
            return Ok(None);
        };
        let name = bare_reference(&self.target(session));
        // A bare session with turns of another session is not ours to delete.
        let Some(chosen) = self.holding(turns, tip)? else {
            let own = self.build_copy(turns, None)?.copy.ids();
            self.compare(session, &name, Some(tip), &own)?;
            return Ok(None);
        };

        let number = chosen.copy.number_of(tip);
        let number = number.filter(|_| chosen.redacted.is_none());
        let to = SentRef::Deleted(tip);
        Ok(Some((RefUpdate { name, to }, number)))
    }

    /// `own` is oldest first. Also returns the index of the newest common turn.
    fn compare(
        &self,
        session: &SessionName,
        reference: &str,
        there: Option<CommitId>,
        own: &[CommitId],
    ) -> anyhow::Result<(PushState, Option<usize>)> {
        let Some(tip) = there else {
            return Ok((PushState::New, None));
        };
        if let Some(at) = own.iter().position(|id| *id == tip) {
            let is_last = at + 1 == own.len();
            let state = if is_last {
                PushState::Current
            } else {
                PushState::Ahead
            };
            return Ok((state, Some(at)));
        }

        match find_diverged(self.project, self.remote, reference, tip, own) {
            None => Ok((PushState::Behind, Some(own.len() - 1))),
            Some(turns) => Err(PushError::Diverged {
                remote: self.remote.clone(),
                name: self.target(session),
                turns,
            }
            .into()),
        }
    }

    fn begin(
        &self,
        session: &SessionName,
        turns: &[Turn],
        state: PushState,
        from: Option<CommitId>,
        base: Option<usize>,
    ) -> anyhow::Result<PreparedSession<'a>> {
        let Some(newest) = turns.last() else {
            anyhow::bail!("session `{session}` has no turn");
        };
        let preview = SessionPreview {
            session: session.clone(),
            target: self.target(session),
            mode: PushMode::Code,
            reference: String::new(),
            state,
            from,
            to: newest.commit,
            turns: newest.number(),
            new_turns: newest.number() - base.unwrap_or(0) as u64,
            redacted: Vec::new(),
            redactions: 0,
            lacking: MissingOnRemote::default(),
            files: Vec::new(),
            more_files: 0,
            replaces: None,
            signed: false,
            notes: Vec::new(),
        };
        Ok(PreparedSession {
            preview,
            findings: Vec::new(),
            updates: Vec::new(),
            copy: None,
        })
    }

    fn search(
        &self,
        prepared: &mut PreparedSession<'a>,
        turns: &[Turn],
        base: Option<usize>,
        redacted: Option<&[LeakKind]>,
        missing: &MissingCode,
    ) -> anyhow::Result<()> {
        let mut search = LeakSearch::new(&self.project.repository, self.home.as_deref());
        if let Some(base) = base {
            // Turns that the remote has already were checked before.
            search.pass(&turns[base])?;
        }

        let new = &turns[base.map_or(0, |base| base + 1)..];
        new.iter().try_for_each(|turn| search.turn(turn))?;
        // What is redacted elsewhere is still in a file or the message of a commit.
        let mut in_code = LeakSearch::new(&self.project.repository, self.home.as_deref());
        match redacted {
            Some(_) => in_code.code(missing, turns)?,
            None => search.code(missing, turns)?,
        }
        prepared.preview.redacted = redacted.unwrap_or_default().to_vec();
        let is_redacted = |finding: &LeakFinding| {
            let mut kinds = prepared.preview.redacted.iter();
            kinds.any(|kind| finding.kind == (*kind).into())
        };
        let (removed, remaining): (Vec<_>, Vec<_>) =
            search.findings().into_iter().partition(is_redacted);
        prepared.preview.redactions = removed.len();
        prepared.findings = remaining;
        prepared.findings.extend(in_code.findings());
        for finding in &mut prepared.findings {
            finding.allowed = self.options.allows(&self.project.settings, finding);
        }
        Ok(())
    }
}

/// The commits of the turns with files: those of the worktree and of the user.
fn commits_of_code(turns: &[Turn]) -> Vec<String> {
    let of = |turn: &Turn| [turn.workspace, turn.publication];
    let commits = turns.iter().flat_map(of).flatten();
    commits.map(|id| id.to_string()).collect()
}

pub(super) struct ChosenCopy<'a> {
    pub(super) copy: SessionCopy,
    pub(super) batch: Batch<'a>,
    pub(super) redacted: Option<Vec<LeakKind>>,
}

impl<'a> Sender<'a, '_> {
    /// The bare session that continues the remote's, or the requested one. Fails if redaction is
    /// requested and the remote has the unredacted one.
    pub(super) fn choose(
        &self,
        turns: &[Turn],
        remote_tip: Option<CommitId>,
    ) -> anyhow::Result<ChosenCopy<'a>> {
        let Some(remote_tip) = remote_tip else {
            return self.build_copy(turns, self.redact.clone());
        };
        if self.redact.is_some() {
            let chosen = self.build_copy(turns, self.redact.clone())?;
            let is_plain = || Ok::<_, anyhow::Error>(self.build_copy(turns, None)?.has(remote_tip));
            if !chosen.has(remote_tip) && is_plain()? {
                return Err(PushError::Unredacted {
                    remote: self.remote.clone(),
                    name: self.target(&turns[0].session),
                }
                .into());
            }
            return Ok(chosen);
        }

        let existing = self.holding(turns, remote_tip)?;
        existing.map_or_else(|| self.build_copy(turns, None), Ok)
    }

    /// Like [`Sender::choose`], for turns with their code. `None` if the session goes as it is.
    pub(super) fn choose_code(
        &self,
        turns: &[Turn],
        remote_state: &RemoteState,
    ) -> anyhow::Result<Option<ChosenCopy<'a>>> {
        let is_own = |tip: &CommitId| turns.iter().any(|turn| turn.commit == *tip);
        let is_plain = remote_state.code.as_ref().is_some_and(is_own);
        if let Some(kinds) = &self.redact {
            let copy = self.made_with(turns, kinds.clone(), true)?;
            // The copy is the session itself if nothing is taken out of it.
            if is_plain && !remote_state.code.is_some_and(|tip| copy.has(tip)) {
                return Err(PushError::Unredacted {
                    remote: self.remote.clone(),
                    name: self.target(&turns[0].session),
                }
                .into());
            }
            return Ok(Some(copy));
        }

        let Some(remote_tip) = remote_state.code else {
            // The bare session that the code replaces keeps its redaction.
            let bare = remote_state.bare.map(|tip| self.holding(turns, tip));
            let kinds = bare.transpose()?.flatten().and_then(|bare| bare.redacted);
            let copy = kinds.map(|kinds| self.made_with(turns, kinds, true));
            return copy.transpose();
        };
        for kinds in variants().filter(|_| !is_plain) {
            let copy = self.made_with(turns, kinds, true)?;
            if copy.has(remote_tip) {
                return Ok(Some(copy));
            }
        }
        Ok(None)
    }

    /// Tries all redactions.
    pub(super) fn holding(
        &self,
        turns: &[Turn],
        commit: CommitId,
    ) -> anyhow::Result<Option<ChosenCopy<'a>>> {
        for kinds in std::iter::once(None).chain(variants().map(Some)) {
            let candidate = self.build_copy(turns, kinds)?;
            if candidate.has(commit) {
                return Ok(Some(candidate));
            }
        }
        Ok(None)
    }

    pub(super) fn build_copy(
        &self,
        turns: &[Turn],
        kinds: Option<Vec<LeakKind>>,
    ) -> anyhow::Result<ChosenCopy<'a>> {
        match kinds {
            None => Ok(ChosenCopy {
                copy: bare_copy(&self.project.repository, turns)?,
                batch: begin_batch(&self.project.repository),
                redacted: None,
            }),
            Some(kinds) => self.made_with(turns, kinds, false),
        }
    }

    fn made_with(
        &self,
        turns: &[Turn],
        kinds: Vec<LeakKind>,
        keeps_code: bool,
    ) -> anyhow::Result<ChosenCopy<'a>> {
        let repository = &self.project.repository;
        let batch = begin_batch(repository);
        let redaction = Redaction {
            kinds: kinds.clone(),
            home: self.home.clone(),
            keeps_code,
        };
        Ok(ChosenCopy {
            copy: redacted(repository, turns, &redaction, &batch)?,
            batch,
            redacted: Some(kinds),
        })
    }
}

fn variants() -> impl Iterator<Item = Vec<LeakKind>> {
    let [keys, paths] = LeakKind::ALL;
    [vec![keys, paths], vec![keys], vec![paths]].into_iter()
}

impl ChosenCopy<'_> {
    fn has(&self, commit: CommitId) -> bool {
        self.copy.number_of(commit).is_some()
    }
}

#[derive(Debug, Clone, Default)]
pub struct PushOptions {
    /// Empty for the current session.
    pub sessions: Vec<SessionName>,
    pub remote: Option<String>,
    pub mode: Option<PushMode>,
    /// Names, prefixes of names, or kinds.
    pub allow: Vec<String>,
    /// In the pushed copy.
    pub redact: bool,
    /// On the remote.
    pub target: Option<SessionName>,
}

impl PushOptions {
    pub(super) fn allows(&self, settings: &Settings, finding: &LeakFinding) -> bool {
        let kinds = settings.push.allow.iter().map(|kind| kind.name());
        let mut names = self.allow.iter().map(String::as_str).chain(kinds);
        names.any(|name| finding.is_named(name))
    }

    /// `None` if redaction is not requested.
    pub(super) fn redacted(&self, settings: &Settings) -> Option<Vec<LeakKind>> {
        let is_allowed = |kind: &LeakKind| {
            settings.push.allow.contains(kind) || self.allow.iter().any(|name| name == kind.name())
        };
        let kinds = LeakKind::ALL.into_iter().filter(|kind| !is_allowed(kind));
        self.redact.then(|| kinds.collect())
    }
}
