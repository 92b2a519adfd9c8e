//! Text of the notices that workflows report.

use super::drift;
use super::style::{StyledLine, Tone, block};
use crate::change::finding::Finding;
use crate::git::land::shared::{RestoredState, SharedChanges};
use crate::git::object::CommitId;
use crate::git::publish::{Conflict, Salvaged};
use crate::session::artifact;
use crate::session::input::ListScope;
use crate::session::meta::{NotCaptured, RestoreCommand};
use crate::text::context_list::rooted;
use crate::text::hint::with_session;
use crate::text::path::lossy;
use crate::text::sanitize::sanitize_line;
use crate::text::shell_word::shell_word;
use crate::text::{counted, first_names, grouped};
use crate::workflow::land::turns;
use crate::workflow::restore::outcome::{RestoreNote, UndoneCommit};
use crate::workflow::user::{LargeEntry, NoReplan, Notice};
use crate::workspace::drift::{NO_RECORD, TurnName};
use crate::workspace::notice::{FileObstacle, FilesNotice, ReferenceRepair};

/// Files named by one notice.
const MAX_FILES: usize = 5;

/// Exit code of the bisected command that skips a turn, as in `git bisect run`.
const SKIP: i32 = 125;

/// Returns whether a notice is a warning, which is shown even with `-q`.
pub fn is_warning(notice: &Notice) -> bool {
    match notice {
        Notice::Files(notice) => is_files_warning(notice),
        Notice::NotReplanned { why, .. } => matches!(why, NoReplan::Failed(_)),
        Notice::SessionStarted(_)
        | Notice::SessionRenamed { .. }
        | Notice::MadeByCommands(_)
        | Notice::MessageUsed(_)
        | Notice::OnlyReads(_)
        | Notice::WholeProject { .. }
        | Notice::LargeInput { .. }
        | Notice::ShowingFiles(_)
        | Notice::MessageKept
        | Notice::PlanComesFirst
        | Notice::PlanReplaced { .. }
        | Notice::StepStarted { .. }
        | Notice::ModelRemark(_)
        | Notice::CommandsInCopy(_)
        | Notice::CopyLacks { .. }
        | Notice::PriceMissing { .. }
        | Notice::FilesDiffer(_)
        | Notice::SetupStarted(_)
        | Notice::TurnTried { .. }
        | Notice::WorktreeInUse(_)
        | Notice::TaskStarted { .. }
        | Notice::FixStarted(_)
        | Notice::RoleAsked { .. } => false,
        _ => true,
    }
}

fn is_files_warning(notice: &FilesNotice) -> bool {
    !matches!(
        notice,
        FilesNotice::UntrackedCaptured(_)
            | FilesNotice::NotCaptured(_)
            | FilesNotice::LeftoversRemoved(_)
            | FilesNotice::WorktreeUnlisted(_)
            | FilesNotice::LandingFinished { .. }
            | FilesNotice::TornPackMoved(_)
            | FilesNotice::PackIndexed(_)
            | FilesNotice::StaleLockRemoved(_)
            | FilesNotice::TurnFinished { .. }
    )
}

pub fn lines(notice: &Notice) -> Vec<StyledLine> {
    let tone = if is_warning(notice) {
        Tone::Warning
    } else {
        Tone::Plain
    };

    let sentences = sentences(notice);
    sentences
        .iter()
        .flat_map(|sentence| block(tone, &with_session(sentence)))
        .collect()
}

/// So many paths are named in one sentence.
const MAX_NAMED: usize = 5;

/// A command with more paths than this would be too long to copy.
const MAX_COPIED: usize = 20;

/// Returns paths as a sentence names them.
pub fn list_paths(paths: &[impl AsRef<[u8]>]) -> String {
    let name = |path: &[u8]| format!("`{}`", sanitize_line(&String::from_utf8_lossy(path)));
    let named = paths.iter().take(MAX_NAMED);
    let mut names: Vec<String> = named.map(|path| name(path.as_ref())).collect();
    if paths.len() > MAX_NAMED {
        names.push(format!("and {} more", paths.len() - MAX_NAMED));
    }
    names.join(", ")
}

/// Returns the command that restores files from a commit, in any directory.
pub fn restore_command(source: CommitId, paths: &[Vec<u8>]) -> String {
    let is_pattern = |path: &[u8]| path.iter().any(|byte| b"*?[\\".contains(byte));
    let operand = |path: &Vec<u8>| {
        let magic: &[u8] = if is_pattern(path) {
            b":(top,literal)"
        } else {
            b":/"
        };
        shell_word([magic, path].concat())
    };
    let operands: Vec<String> = match paths.len() > MAX_COPIED {
        true => vec![":/".to_owned()],
        false => paths.iter().map(operand).collect(),
    };
    format!("git restore --source={source} -- {}", operands.join(" "))
}

/// Returns what a notice says, mostly one sentence.
fn sentences(notice: &Notice) -> Vec<String> {
    let sentence = match notice {
        Notice::MadeByCommands(files) => {
            format!("New files that only a command made are committed, too: {}", list_paths(files))
        }
        Notice::SharedChanged { changes, restored } => return shared_changed(changes, *restored),
        Notice::Files(notice) => return files_sentences(notice),
        Notice::SessionStarted(name) => format!("Started session {name}."),
        Notice::SessionRenamed { old, new } => format!("Session {old} is now {new}."),
        Notice::WorkLacking(session, turns, is_exact) => drift::lacking(session, turns, *is_exact),
        Notice::AnswerNotSent(typed) => answer_not_sent(typed),
        Notice::MessageUsed(first) => format!("Using the waiting message: {first}"),
        Notice::MessageKept => "your message is kept for the next turn".to_owned(),
        Notice::PlanComesFirst => {
            "a plan is waiting and comes first; your message is for the turn after it".to_owned()
        }
        Notice::PlanReplaced { title, file } => plan_replaced(title, file),
        Notice::MessageNotUsed => {
            "your message was not used, because a plan is still waiting; `teddy plan '<message>'` asks for another one instead".to_owned()
        }
        Notice::KeyRemoved => {
            "what looks like a key was taken out of the message; it is neither recorded nor sent"
                .to_owned()
        }
        Notice::DraftNotKept(why) => format!("what waits for the next turn cannot be kept: {why}"),
        Notice::LargeInput {
            tokens,
            largest,
            takes_commands,
        } => large_input(*tokens, largest, *takes_commands),
        Notice::StepStarted { number, of, name } => format!("Step {number} of {of}: {name}"),
        Notice::ModelRemark(text) => text.clone(),
        Notice::CommandsInCopy(why) => {
            format!("commands run in a copy of your files, not over them: {why}")
        }
        Notice::CopyLacks { missing, editable } => describe_copy(missing, editable),
        Notice::WorktreeDiskFull(path) => format!(
            "the disk of `{path}` is full, so what commands wrote there may be incomplete; `teddy gc` frees space, `worktree.root` names another place"
        ),
        Notice::AgentSettings(paths) => format!(
            "this repository has settings for agents, which can make the agent run something inside of its sandbox, where it has the network and its own login: {}",
            paths.join(", ")
        ),
        Notice::AgentDenied(hint) => hint.clone(),
        Notice::AgentStopped(reason) => stopped_early(reason),
        Notice::AgentWorkLeftOut(files) => return left_out(files, "is not in the plan", ""),
        Notice::PriceMissing { model, setting } => format!(
            "the cost is unknown: the price of model `{model}` has no `{setting}`; `limits.cost` counts those tokens as plain input"
        ),
        Notice::PartialAnswerKept(session) => format!(
            "what arrived was not taken as a plan; `teddy -s {session} show draft {}` shows it",
            artifact::REPLY
        ),
        Notice::StepChanged { pipeline, step } => format!(
            "pipeline `{pipeline}` is not as it was: step `{step}` was sent something else"
        ),
        Notice::FilesDiffer(before) => files_differ(before),
        Notice::FilesTouched { model, paths } => changed_during_call(model, paths),
        Notice::ChangedUnderReview => {
            "your files changed while the plan was reviewed; it is validated again".to_owned()
        }
        Notice::ChangedSincePlan(files) => changed_since_plan(files),
        Notice::NotReplanned {
            why,
            takes_commands,
            is_question,
        } => no_replan(why, *takes_commands, *is_question),
        Notice::WholeProject { files, tokens } => format!(
            "The model sees the whole project: {}, about {} tokens.",
            counted(*files, "file"),
            grouped(*tokens)
        ),
        Notice::InputCut { sent, read } => input_cut(*sent, *read),
        Notice::OnlyReads(title) => format!("\"{}\" only reads, so it needs no approval.", sanitize_line(title)),
        Notice::ShowingFiles(files) => {
            format!("The model changed files that it had not read: showing it {} and asking again.", list_paths(files))
        }
        Notice::NoPlanInstead(why) => {
            format!("no other plan was made: {why}; your message is kept for `teddy plan`")
        }
        Notice::SetupStarted(command) => format!("preparing the worktree: {command}"),
        Notice::WaitingToRecord(holder) => format!("{holder}; waiting to record what the plan did"),
        Notice::PlanNotKept(why) => format!("the plan cannot be kept for another run: {why}"),
        Notice::TurnTried { turn, exit_code } => {
            format!("{}: {}", turn_words(turn.as_ref()), verdict(*exit_code))
        }
        Notice::NoHooks { dir, file } => format!(
            "no hook runs: `core.hooksPath` is `{}`, which does not exist; `git config --file {} --unset-all core.hooksPath` enables those of the repository",
            sanitize_line(&dir.display().to_string()),
            shell_word(file.as_os_str().as_encoded_bytes())
        ),
        Notice::WorktreeInUse(name) => format!("session `{name}` is in use; its worktree stays"),
        Notice::DocumentMistakes(findings) => on_lines(findings),
        Notice::EditedDocuments(names) => {
            format!("edited since it was challenged: {}", names.join(", "))
        }
        Notice::TaskStarted { number, title } => format!("task {number}: {title}"),
        Notice::FixStarted(review) => format!("fixing what review {review} found"),
        Notice::RoleAsked { role, about } => format!("{role}: {about}"),
        Notice::AnswerUnusable { about, mistakes } => format!(
            "the answer is not {about}; asking again:\n{}",
            mistakes.join("\n")
        ),
    };
    vec![sentence]
}

fn plan_replaced(title: &str, file: &str) -> String {
    format!(
        "the plan that waited is replaced: {}; `teddy show draft {file}` shows it",
        sanitize_line(title)
    )
}

fn input_cut(sent: usize, read: u64) -> String {
    format!(
        "warning: the server read only {} of about {} tokens, so the model has not seen all of the input.\n\
         Its context window is too small: for Ollama, start the server with `OLLAMA_CONTEXT_LENGTH=131072`, or set `num_ctx` in the Modelfile.",
        grouped(read),
        grouped(sent)
    )
}

fn changed_since_plan(files: &[String]) -> String {
    format!("{} changed after the plan was made", list_paths(files))
}

fn on_lines(findings: &[Finding]) -> String {
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    lines.join("\n")
}

fn files_differ(before: &str) -> String {
    format!(
        "your files are not as they were before the turn; the plan is checked against those of now. `teddy restore {}` takes them back",
        shell_word(before)
    )
}

fn changed_during_call(model: &str, paths: &[String]) -> String {
    let paths = paths.iter().map(|path| sanitize_line(path).into_owned());
    let names = first_names(paths, MAX_FILES);
    let model = sanitize_line(model);
    format!(
        "your files changed while the model `{model}` was asked: {names}. If it did that, `teddy record --by {model}` makes a turn of it, which can be undone; a model of `kind: agent` works in its own worktree"
    )
}

/// Names at most three directories.
fn describe_copy(missing: &[String], editable: &[String]) -> String {
    let quoted = |names: &[String]| drift::quoted_names(names, 3);
    let mut parts = Vec::new();
    if !missing.is_empty() {
        parts.push(format!(
            "without {}, which git ignores; `worktree.copy` or `worktree.link` provides such directories",
            quoted(missing)
        ));
    }
    if !editable.is_empty() {
        parts.push(format!(
            "{} has modules of your checkout (`pip install -e`): commands use them instead of those in the worktree, or fail if the sandbox hides them; `worktree.setup` can install those in the worktree",
            quoted(editable)
        ));
    }
    // An overlay has all files, but can be mounted at another path.
    let place = match missing.is_empty() {
        true => "at a different path than your files",
        false => "in a copy of your files",
    };
    format!("commands run {place}: {}", parts.join("; "))
}

/// Says that the plan has only what an agent did before it stopped.
pub fn stopped_early(reason: &str) -> String {
    format!(
        "the agent stopped early: {}; the plan can be a part of the work",
        sanitize_line(reason)
    )
}

/// Names what fills an input, and the command that leaves the largest part out.
fn large_input(tokens: usize, largest: &[LargeEntry], takes_commands: bool) -> String {
    let total = format!("About {} tokens in each turn", grouped(tokens));
    let Some(first) = largest.first() else {
        return format!("{total}.");
    };
    let command = match takes_commands {
        true => "/drop",
        false => "teddy context rm",
    };
    let scope = match first.scope {
        ListScope::Global => " --global",
        ListScope::Session | ListScope::Turn => "",
    };
    let operand = shell_word(rooted(&first.name));
    let mut parts = vec![format!(
        "{} is {} of them (`{command}{scope} {operand}` leaves it out)",
        sanitize_line(&first.name),
        grouped(first.tokens)
    )];
    let others = largest.iter().skip(1);
    parts.extend(
        others.map(|entry| format!("{} {}", sanitize_line(&entry.name), grouped(entry.tokens))),
    );
    format!("{total}: {}", parts.join(", "))
}

/// At the prompt of a loop, the next question says how to continue.
fn no_replan(why: &NoReplan, takes_commands: bool, is_question: bool) -> String {
    let remedy = match is_question {
        _ if takes_commands => "",
        true => "; ask again with `teddy ask '<question>'`",
        false => "; say what to do with `teddy plan '<message>'`",
    };
    match why {
        NoReplan::TooMany(1) => format!("the plan was rejected{remedy}"),
        NoReplan::TooMany(plans) => format!("{plans} plans in a row were rejected{remedy}"),
        NoReplan::SameMistake => format!("the same mistake was made twice{remedy}"),
        NoReplan::NoModel => "no model is configured to correct the plan".to_owned(),
        NoReplan::Failed(why) => format!("the model could not be asked again: {why}"),
    }
}

fn turn_words(turn: Option<&(u64, String)>) -> String {
    match turn {
        None => "before the first turn".to_owned(),
        Some((number, title)) => format!("turn {number}, {title}"),
    }
}

fn verdict(exit_code: i32) -> String {
    match exit_code {
        0 => "good".to_owned(),
        SKIP => format!("skipped (exit code {SKIP})"),
        code => format!("bad (exit code {code})"),
    }
}

/// Lists changes of the repository while git committed, with the commands that revert them.
fn shared_changed(changes: &SharedChanges, restored: RestoredState) -> Vec<String> {
    let mut sentences = Vec::new();
    for entry in &changes.dropped {
        let (message, id) = (sanitize_line(&entry.message), &entry.commit);
        sentences.push(match restored.stash {
            true => format!("the stash entry \"{message}\" was taken while git committed; it is back in the stash"),
            false => format!(
                "the stash entry \"{message}\" was taken while git committed; `git stash store -m {} {id}` restores it",
                shell_word(&entry.message)
            ),
        });
    }
    for entry in &changes.added {
        let (message, id) = (sanitize_line(&entry.message), &entry.commit);
        sentences.push(format!(
            "a stash entry was left while git committed, \"{message}\"; `git stash show -p {id}` shows what it has"
        ));
    }
    for (name, old) in &changes.moved {
        let name = sanitize_line(name);
        sentences.push(format!(
            "`{name}` changed while git committed; `git update-ref {} {old}` restores it",
            shell_word(name.as_bytes())
        ));
    }
    if let Some(branch) = &changes.left_branch {
        let branch = sanitize_line(branch);
        let now = match (&changes.new_branch, restored.head) {
            (_, true) => "; it is back there".to_owned(),
            (Some(branch), false) => format!(", and is on `{}` now", sanitize_line(branch)),
            (None, false) => String::new(),
        };
        sentences.push(format!("HEAD left `{branch}` while git committed{now}"));
    }
    sentences
}

/// Returns what a notice about the files says.
fn files_sentences(notice: &FilesNotice) -> Vec<String> {
    let sentence = match notice {
        FilesNotice::Drifted { drift, turn } => return drift::sentences(drift, *turn),
        FilesNotice::NotCaptured(files) => {
            return left_out(files, "is in no snapshot", "; `teddy status` names all");
        }
        FilesNotice::UntrackedCaptured(count) => format!(
            "snapshots include {}; use `.gitignore` or `snapshot.exclude` to leave files out",
            counted(*count, "untracked file")
        ),
        FilesNotice::LeftoversRemoved(session) => format!(
            "removed what a run that was cut short left in the worktree of session `{session}`"
        ),
        FilesNotice::WorktreeUnlisted(session) => {
            format!("git no longer lists the worktree of session `{session}`")
        }
        FilesNotice::LandingFinished { branch, commit } => {
            format!("finished a landing on `{branch}`: {commit}")
        }
        FilesNotice::ChangedDuringCommit { paths, source } => {
            let restore = restore_command(*source, paths);
            format!(
                "{} changed while git committed: {}; `{restore}` restores what you had",
                counted(paths.len(), "file"),
                list_paths(paths)
            )
        }
        FilesNotice::PackIndexed(name) => {
            format!("made the index of `{name}` again, which was damaged")
        }
        FilesNotice::TornPackMoved(name) => format!(
            "moved `{name}`, which a power cut left without its bytes, to `.git/teddy/undo/packs`"
        ),
        FilesNotice::DamagedObjectsMoved(count) => format!(
            "moved {} to `.git/teddy/undo/objects`: a power cut or the disk took the content",
            counted(*count, "damaged object")
        ),
        FilesNotice::StaleLockRemoved(name) => {
            format!("removed the lock of `{name}` that a crash left")
        }
        FilesNotice::ReferenceIncomplete(name) => {
            format!("some of what `{name}` reaches is gone, and no earlier state of it is whole")
        }
        FilesNotice::ReferenceRepaired { name, repair } => {
            format!("`{name}` was damaged and {}", repair_words(*repair))
        }
        FilesNotice::JournalDamaged(moved_to) => format!(
            "the journal was damaged and is now `{}`; `teddy status` shows where things stand",
            moved_to.display()
        ),
        FilesNotice::PendingPutAside(moved_to) => {
            format!("what was left to do is in `{}`", moved_to.display())
        }
        FilesNotice::CheckoutGone { path, session } => format!(
            "`{}` is gone, so a turn of `{session}` cannot be applied there",
            path.display()
        ),
        FilesNotice::ObjectsGone(session) => format!(
            "objects of the interrupted turn of `{session}` are gone; `teddy restore @` applies it"
        ),
        FilesNotice::TurnFinished { session, files } => {
            let files = counted(*files, "file");
            format!("finished an interrupted turn of `{session}`: {files}")
        }
        FilesNotice::Obstacle(cause) => obstacle(cause),
    };
    vec![sentence]
}

fn repair_words(repair: ReferenceRepair) -> String {
    match repair {
        ReferenceRepair::Removed => "was taken away: no commit of it is left".to_owned(),
        ReferenceRepair::Turn { number, commit } => {
            format!(
                "is at turn {number} ({commit}) again; turns after it, if there were any, are lost"
            )
        }
        ReferenceRepair::Commit(commit) => format!("is at {commit} again"),
    }
}

/// Describes why a file could not be written.
pub fn obstacle(obstacle: &FileObstacle) -> String {
    let (path, conflict) = match obstacle {
        FileObstacle::NotWritten { path, conflict } => (String::from_utf8_lossy(path), conflict),
        FileObstacle::SavedMeanwhile(Salvaged { path, saved_as }) => {
            return format!(
                "bytes of yours that were saved to `{}` meanwhile are in `{}`",
                String::from_utf8_lossy(path),
                saved_as.display()
            );
        }
    };
    match conflict {
        Conflict::Changed => format!("`{path}` was changed meanwhile and is left as it is"),
        Conflict::Busy => format!(
            "`{path}` is open for writing in another program; once that has closed it, `teddy restore @ --theirs` writes the turn's version"
        ),
        Conflict::Unwritable => format!(
            "`{path}` or its directory is read-only; once it is writable, `teddy restore @ --theirs` writes the turn's version"
        ),
        Conflict::Unfit => format!(
            "`{path}` has bytes that git's filters don't store, and the change doesn't fit them, so the file stays as it is; `teddy restore @ --theirs` writes the turn's version and keeps yours in `.git/teddy/undo/replaced`"
        ),
        Conflict::CaseCollision => format!(
            "`{path}` differs from the name of another file in case only, and git ignores case here (`core.ignoreCase`); once one of them has another name, `teddy restore @ --theirs` writes the turn's version"
        ),
        Conflict::Repository => format!(
            "`{path}` is a repository of its own on one side, or in one; TeDDy changes nothing there"
        ),
        Conflict::Failed(why) => {
            format!("{why}; once that works, `teddy restore @ --theirs` writes the turn's version")
        }
    }
}

/// Returns a sentence for each file that was left out, up to a limit. `how` follows the file name,
/// `rest` the number of others.
pub fn left_out(files: &[NotCaptured], how: &str, rest: &str) -> Vec<String> {
    let line =
        |file: &NotCaptured| format!("`{}` {how}: {}", sanitize_line(&file.path), file.reason);
    let more = files.len().saturating_sub(MAX_FILES);
    let more = (more > 0).then(|| format!("{}{rest}", counted(more, "more file")));
    files.iter().take(MAX_FILES).map(line).chain(more).collect()
}

pub fn restore_note(note: &RestoreNote) -> String {
    match note {
        RestoreNote::NoRecord => NO_RECORD.to_owned(),
        RestoreNote::Obstacle(cause) => obstacle(cause),
        RestoreNote::StillLanded(by, commits) => still_landed(*by, commits),
        RestoreNote::WouldStayLanded(commits) => format!(
            "{}, and would stay there; `git revert` takes back a commit",
            landed_turns(&commits.iter().collect::<Vec<_>>())
        ),
        RestoreNote::NotInSnapshot(paths) => format!(
            "{} in the way and in no snapshot, so nothing was changed; move {} away, or `--ours` leaves {} there",
            paths_with_verb(paths),
            pronoun_of(paths),
            pronoun_of(paths)
        ),
        RestoreNote::OutsidePaths(paths) => format!(
            "{} in the way and not on the paths that you named, so nothing was changed; name {} as well, or move {} away",
            paths_with_verb(paths),
            pronoun_of(paths),
            pronoun_of(paths)
        ),
        RestoreNote::PlanWaits(title) => format!(
            "the plan that waits was made before this: {}; `teddy execute` checks it against your files as they are now",
            sanitize_line(title)
        ),
        RestoreNote::ForeignPlanDropped(title) => format!(
            "the waiting plan was another user's and was dropped: {}",
            sanitize_line(title)
        ),
        RestoreNote::TakenFromOthers(turns) => taken_from_others(turns),
        RestoreNote::TakenFromDeleted(turns) => format!(
            "your files no longer contain {}; \
             if `teddy gc` left a bundle in `.git/teddy/archive`, `teddy fetch <bundle>` restores what it has",
            drift::list_of(turns)
        ),
        RestoreNote::WouldTakeFromOthers(turns) => format!(
            "this would also remove {} from your files",
            drift::list_of(turns)
        ),
    }
}

fn answer_not_sent(typed: &str) -> String {
    let typed = sanitize_line(typed);
    format!("another process added a turn meanwhile, so your answer was not used: {typed}")
}

/// Most turns for which the command that applies them is printed.
const MAX_PICKED: usize = 3;

fn taken_from_others(turns: &[TurnName]) -> String {
    let other = turns.first().map_or("", |turn| turn.session.as_str());
    let mut remedies = Vec::new();
    if turns.len() <= MAX_PICKED {
        let mut names: Vec<(&str, u64)> = turns
            .iter()
            .map(|turn| (turn.session.as_str(), turn.turn))
            .collect();
        names.sort_unstable();
        let names: Vec<String> = names
            .iter()
            .map(|(session, turn)| format!("{}:{turn}", sanitize_line(session)))
            .collect();
        let only = if turns.len() == 1 { "it" } else { "them" };
        remedies.push(format!(
            "`teddy pick {}` applies only {only}",
            names.join(" ")
        ));
    }
    remedies.push(format!(
        "`teddy switch {}` and `teddy restore @` restore all that was below as well",
        sanitize_line(other)
    ));
    format!(
        "your files no longer contain {}; {}",
        drift::list_of(turns),
        remedies.join(", ")
    )
}

/// Returns some paths as the subject of a sentence: "`a` is", "`a` and 2 more files are".
fn paths_with_verb(paths: &[Vec<u8>]) -> String {
    let first = paths.first().map_or_else(String::new, |path| lossy(path));
    let first = sanitize_line(&first);
    match paths.len() {
        0 | 1 => format!("`{first}` is"),
        all => format!("`{first}` and {} more are", counted(all as u64 - 1, "file")),
    }
}

fn pronoun_of(paths: &[Vec<u8>]) -> &'static str {
    if paths.len() > 1 { "them" } else { "it" }
}

/// Says where turns are that were taken out of the files only, and how they are taken out there.
fn still_landed(by: RestoreCommand, landed: &[UndoneCommit]) -> String {
    let back = match by {
        RestoreCommand::Undo => "redo",
        RestoreCommand::Restore => "undo",
    };
    let (here, elsewhere): (Vec<_>, Vec<_>) = landed.iter().partition(|landed| landed.is_current);
    let mut sentences = Vec::new();
    if !here.is_empty() {
        let stays = if here.len() == 1 {
            "it stays"
        } else {
            "they stay"
        };
        let commits = here.iter().map(|landed| format!("{:.8}", landed.commit));
        let commits: Vec<String> = commits.collect();
        sentences.push(format!(
            "{}, where {stays}; commit your files as they are now, or `teddy {back}` and then `git revert {}`",
            landed_turns(&here),
            commits.join(" ")
        ));
    }

    for landed in elsewhere {
        sentences.push(format!(
            "{}, where it stays until `git revert {:.8}` there",
            landed_turns(&[landed]),
            landed.commit
        ));
    }
    sentences.join("; ")
}

fn landed_turns(landed: &[&UndoneCommit]) -> String {
    let describe = |landed: &&UndoneCommit| {
        let has = if landed.turns.len() == 1 {
            "has"
        } else {
            "have"
        };
        let (turns, branch) = (turns(&landed.turns), sanitize_line(&landed.branch));
        format!("{turns} {has} landed as {:.8} on {branch}", landed.commit)
    };
    let notes: Vec<String> = landed.iter().map(describe).collect();
    notes.join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(notice: &Notice, expected: (bool, &[&str])) {
        assert_eq!(
            (is_warning(notice), sentences(notice)),
            (
                expected.0,
                expected.1.iter().map(|line| (*line).to_owned()).collect()
            )
        );
    }

    #[test]
    fn a_bisection_tells_each_turn_with_its_verdict() {
        let tried = |turn: u64, exit_code| Notice::TurnTried {
            turn: (turn > 0).then(|| (turn, "Add b".to_owned())),
            exit_code,
        };
        check(&tried(0, 0), (false, &["before the first turn: good"]));
        check(&tried(2, 1), (false, &["turn 2, Add b: bad (exit code 1)"]));
        check(
            &tried(2, SKIP),
            (false, &["turn 2, Add b: skipped (exit code 125)"]),
        );
    }

    /// Regression: a directory of a clone wrote a line of its own, such as a hint.
    #[test]
    fn what_a_copy_lacks_is_named_on_one_line() {
        let notice = Notice::CopyLacks {
            missing: vec!["ig`\nhint: run this".to_owned()],
            editable: vec!["a\nb/.venv".to_owned()],
        };
        assert!(sentences(&notice).iter().all(|line| !line.contains('\n')));
    }

    #[test]
    fn only_the_first_files_that_are_left_out_are_named() {
        let files = (1..=MAX_FILES + 2).map(|number| NotCaptured {
            path: format!("{number}\u{7}"),
            reason: "too large".to_owned(),
        });
        check(
            &Notice::Files(FilesNotice::NotCaptured(files.collect())),
            (
                false,
                &[
                    "`1\\u{7}` is in no snapshot: too large",
                    "`2\\u{7}` is in no snapshot: too large",
                    "`3\\u{7}` is in no snapshot: too large",
                    "`4\\u{7}` is in no snapshot: too large",
                    "`5\\u{7}` is in no snapshot: too large",
                    "2 more files; `teddy status` names all",
                ],
            ),
        );
    }
}

#[cfg(test)]
mod large_input_tests {
    use super::*;

    #[test]
    fn a_large_input_says_what_fills_it_and_what_leaves_it_out() {
        let entry = |scope, name: &str, tokens| LargeEntry {
            scope,
            name: name.to_owned(),
            tokens,
        };
        let check = |largest: &[LargeEntry], takes_commands, expected: &str| {
            assert_eq!(large_input(70_000, largest, takes_commands), expected);
        };
        let two = [
            entry(ListScope::Turn, "README.md", 10_000),
            entry(ListScope::Session, "src", 9_000),
        ];
        check(
            &two,
            true,
            "About 70,000 tokens in each turn: README.md is 10,000 of them (`/drop /README.md` leaves it out), src 9,000",
        );
        check(
            &[entry(ListScope::Global, "a b", 60_000)],
            false,
            "About 70,000 tokens in each turn: a b is 60,000 of them (`teddy context rm --global '/a b'` leaves it out)",
        );
        check(&[], true, "About 70,000 tokens in each turn.");
    }
}

#[cfg(test)]
mod restore_note_tests {
    use super::*;

    #[test]
    fn what_a_restore_left_on_a_branch_is_told_once() {
        let landed = |digit: &str, turns: &[u64], branch: &str| UndoneCommit {
            commit: digit.repeat(40).parse().unwrap(),
            turns: turns.to_vec(),
            branch: branch.to_owned(),
            is_current: branch == "main",
        };
        let landed = vec![
            landed("a", &[1], "main"),
            landed("b", &[2, 3], "main"),
            landed("c", &[4], "other"),
        ];
        let note = RestoreNote::StillLanded(RestoreCommand::Undo, landed);
        assert_eq!(
            restore_note(&note),
            "turn 1 has landed as aaaaaaaa on main and turns 2, 3 have landed as bbbbbbbb on main, where they stay; commit your files as they are now, or `teddy redo` and then `git revert aaaaaaaa bbbbbbbb`; turn 4 has landed as cccccccc on other, where it stays until `git revert cccccccc` there"
        );
    }
}
