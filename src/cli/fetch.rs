//! `teddy fetch`: fetches sessions from a remote or a bundle.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::app::App;
use super::complete;
use super::failure::{InvalidArgument, Unfinished};
use crate::git::bundle::SizeLimit;
use crate::git::remote::error::RemoteError;
use crate::host::screen;
use crate::session::name::SessionName;
use crate::text::hint::error_with_hint;
use crate::text::sanitize::sanitize_line;
use crate::text::{counted, first_names};
use crate::workflow::archive::import::{
    ImportOptions, ImportState, Imported, ImportedSession, import,
};
use crate::workflow::fetch::{
    FetchOptions, FetchResult, FetchState, FetchedSession, OfferedSession, fetch, offered,
};

/// Fewer sessions are checked without a message.
const MANY: usize = 500;
const REFRESH: Duration = Duration::from_millis(100);

/// Fetch sessions from a remote or a bundle
///
/// They are called `<remote>/<session>` then, wherever a session or a turn can be named: `teddy
/// show origin/add-auth:3`. Each one is checked first, and none that fails verification is
/// taken. Nothing of them runs, and your own sessions stay as they are.
///
/// Sessions of a bundle, a file that `teddy export --bundle` wrote, keep their names. All of the
/// bundle is checked first, and nothing is taken if anything is wrong. They count as another user's,
/// even if you exported them yourself: a waiting plan does not run before `teddy switch --adopt`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy fetch                       all sessions of the remote\n  teddy fetch origin add-auth       one session\n  teddy fetch -n                    list what the remote has\n  teddy show origin/add-auth:3      look at a turn\n  teddy branch origin/add-auth:3 mine      continue from there\n  teddy fetch -n add-auth.bundle    check a bundle and say what is in it\n  teddy fetch all.bundle add-auth --as other-auth"
)]
pub(super) struct Args {
    /// The remote, or the file of a bundle; the remote that git would fetch from if omitted
    #[arg(value_name = "REMOTE|FILE", value_hint = clap::ValueHint::AnyPath, add = complete::with(complete::remotes))]
    remote: Option<String>,
    /// Sessions, by their names there; all of them if omitted
    #[arg(value_name = "SESSION")]
    sessions: Vec<String>,
    /// Only list the sessions that the remote has, or check the bundle
    #[arg(short = 'n', long, conflicts_with = "prune")]
    dry_run: bool,
    /// Give the session of a bundle another name here; its signature stays behind
    #[arg(long = "as", value_name = "NAME")]
    called: Option<String>,
    /// Accept bundles over 4 GiB, and files in them over 512 MiB
    #[arg(long)]
    large: bool,
    /// Forget fetched sessions that the remote does not have any more
    #[arg(short, long, conflicts_with = "sessions")]
    prune: bool,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<()> {
    if let Some(file) = args.remote.as_deref().filter(|name| is_bundle(app, name)) {
        return fetch_bundle(app, file, &args);
    }
    check_options(&args)?;
    let project = app.record()?;
    if args.dry_run {
        let (remote, sessions) = offered(&project, args.remote.as_deref())?;
        if app.global.json {
            return app.print_json(&serde_json::json!({ "remote": remote, "sessions": sessions }));
        }

        app.print(sessions.iter().map(offer).collect::<String>())?;
        if sessions.is_empty() {
            app.note(&format!("`{remote}` has no sessions."));
        }
        return Ok(());
    }

    let names = args.sessions.iter().map(|name| SessionName::from_ref(name));
    let is_screen = screen::is_screen() && !app.global.quiet && !app.global.json;
    let mut watch = watch(app, is_screen);
    let result = fetch(
        &project,
        &FetchOptions {
            remote: args.remote,
            sessions: names.collect::<Result<_, _>>()?,
            prune: args.prune,
            progress: is_screen,
        },
        &mut watch,
    )?;
    let unfinished = unfinished(&result);
    if app.global.json {
        return match unfinished {
            Some(error) => Err(Unfinished {
                partial: serde_json::to_value(&result)?,
                error,
            }
            .into()),
            None => app.print_json(&result),
        };
    }

    report(app, &result)?;
    unfinished.map_or(Ok(()), Err)
}

/// Returns whether a word names a bundle and not a remote.
fn is_bundle(app: &App, name: &str) -> bool {
    let metadata = app.global.resolve(Path::new(name)).metadata();
    name.ends_with(".bundle") || metadata.is_ok_and(|metadata| !metadata.is_dir())
}

/// Checks that no option of bundles is given for a remote.
fn check_options(args: &Args) -> anyhow::Result<()> {
    let (option, does) = match args {
        Args {
            called: Some(_), ..
        } => ("--as", "names a session of a bundle"),
        Args { large: true, .. } => ("--large", "accepts a large bundle"),
        Args {
            dry_run: true,
            sessions,
            ..
        } if !sessions.is_empty() => ("-n", "lists all sessions of a remote"),
        _ => return Ok(()),
    };
    Err(InvalidArgument::error(
        format!("`{option}` {does}"),
        "`teddy fetch FILE` takes sessions from a bundle",
    ))
}

/// Reports how many sessions are checked, if there are many: in a line that is rewritten on a
/// terminal, else once.
fn watch(app: &App, is_screen: bool) -> impl FnMut(usize, usize) {
    let mut last_shown = Instant::now();
    move |checked, all| {
        if all < MANY {
            return;
        }
        let is_due = checked == 0 || checked + 1 == all || last_shown.elapsed() >= REFRESH;
        if is_screen && is_due {
            last_shown = Instant::now();
            let end = if checked + 1 == all { "\n" } else { "" };
            let _ = write!(
                std::io::stderr(),
                "\r\x1b[KChecking sessions: {} of {all}{end}",
                checked + 1
            );
        } else if !is_screen && checked == 0 {
            app.note(&format!("Checking {}.", counted(all, "session")));
        }
    }
}

fn offer(offer: &OfferedSession) -> String {
    let fetched = if offer.fetched { "fetched" } else { "" };
    let kind = if offer.code {
        "session"
    } else {
        "without code"
    };
    let id = offer.tip.to_string();
    format!("{id:.7}  {kind:12}  {fetched:7}  {}\n", offer.session)
}

fn report(app: &App, result: &FetchResult) -> anyhow::Result<()> {
    let changed = |one: &&FetchedSession| one.state != FetchState::Unchanged;
    let lines = result.sessions.iter().filter(changed).map(line);
    let pruned = result.pruned.iter();
    let pruned_lines = pruned.map(|session| format!("gone       {session}\n"));
    app.print(lines.chain(pruned_lines).collect::<String>())?;
    for refused in &result.refused {
        app.warn(&format!(
            "`{}` of `{}` was not taken: {}",
            refused.reference, result.remote, refused.why
        ));
    }

    let is_new = result.sessions.iter().any(|one| changed(&one));
    if !is_new && result.pruned.is_empty() && result.refused.is_empty() && result.missing.is_empty()
    {
        let count = counted(result.sessions.len(), "session");
        app.note(&format!(
            "`{}` has {count}, and nothing new.",
            result.remote
        ));
    }
    Ok(())
}

fn line(fetched: &FetchedSession) -> String {
    let state = match fetched.state {
        FetchState::New => "new",
        FetchState::Updated => "updated",
        FetchState::Rewritten => "rewritten",
        FetchState::Unchanged => "unchanged",
    };
    let kind = if fetched.code { "" } else { " (without code)" };
    let turns = counted(fetched.turns, "turn");
    let title = sanitize_line(&fetched.title);
    format!("{state:9}  {}  {turns}  {title}{kind}\n", fetched.session)
}

/// Returns an error if some of the requested sessions were not fetched.
fn unfinished(result: &FetchResult) -> Option<anyhow::Error> {
    let remote = &result.remote;
    if let [session, ..] = result.missing.as_slice() {
        return Some(RemoteError::no_session(remote.clone(), session.as_str()).into());
    }

    let unsound = result.refused.iter().filter(|refused| refused.unsound);
    let unsound = unsound.count();
    (unsound > 0).then(|| {
        let refused = counted(unsound, "session");
        error_with_hint(
            format!("{refused} of `{remote}` could not be taken"),
            "its author can check it with `teddy verify`",
        )
    })
}

/// Omitted refs that are named.
const MAX_NAMED: usize = 5;

/// Imports the sessions of a bundle.
fn fetch_bundle(app: &App, file: &str, args: &Args) -> anyhow::Result<()> {
    let sessions = args.sessions.iter().map(|name| SessionName::from_ref(name));
    let options = ImportOptions {
        sessions: sessions.collect::<Result<_, _>>()?,
        called: args.called.as_deref().map(SessionName::parse).transpose()?,
        is_trial: args.dry_run,
        limit: match args.large {
            true => SizeLimit::None,
            false => SizeLimit::Usual,
        },
    };
    let project = app.record()?;
    let path = app.global.resolve(Path::new(file));
    let result = import(
        &project,
        &path,
        &options,
        app.user(&project, false).as_mut(),
    )?;

    if app.global.json {
        let mut value = serde_json::to_value(&result)?;
        value["dry_run"] = args.dry_run.into();
        return app.print_json(&value);
    }

    app.print(
        result
            .sessions
            .iter()
            .map(imported_line)
            .collect::<String>(),
    )?;
    if !result.ignored.is_empty() {
        let names = first_names(result.ignored.iter().cloned(), MAX_NAMED);
        app.warn(&format!(
            "refs that are no session's were left out: {names}"
        ));
    }
    app.note(&summarize(&result, args.dry_run));
    Ok(())
}

fn imported_line(session: &ImportedSession) -> String {
    let mut notes = Vec::new();
    if session.state == ImportState::Here {
        notes.push("already here");
    }
    if session.signed {
        notes.push("signed");
    }
    if session.draft {
        notes.push("with a turn in progress");
    }

    let notes = match notes.is_empty() {
        true => String::new(),
        false => format!(" ({})", notes.join(", ")),
    };
    format!(
        "{}  {}  {}{notes}\n",
        session.session,
        counted(session.turns, "turn"),
        sanitize_line(&session.title)
    )
}

/// Summarizes the import, and what to do next.
fn summarize(result: &Imported, is_trial: bool) -> String {
    let new = |it: &&ImportedSession| it.state == ImportState::Imported;
    let new: Vec<&ImportedSession> = result.sessions.iter().filter(new).collect();
    let count = counted(new.len(), "session");
    match (new.first(), is_trial) {
        (None, _) => "Nothing to import: everything is here already.".to_owned(),
        (Some(_), true) => format!("The bundle is sound; {count} would be imported."),
        (Some(first), false) => format!(
            "Imported {count}. `teddy show -s {}` shows it; `teddy switch --adopt {}` makes it yours.",
            first.session, first.session
        ),
    }
}
