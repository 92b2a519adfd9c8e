//! `teddy sign`: signs a session.

use std::process::ExitCode;

use super::app::App;
use super::{complete, exit};
use crate::git::sign::Passphrase;
use crate::session::name::SessionName;
use crate::workflow::verify::sign_session;

/// Sign a session with your key
///
/// Lets git sign the newest turn, and with it every turn before it, as a tag: with your identity
/// and your key, of gpg or ssh, as for `git tag -s`. `teddy verify` says who has signed a session,
/// when, and up to which turn. Without a terminal nothing asks for a passphrase.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy sign                                the session in use\n  teddy sign add-auth\n  teddy verify add-auth                     check it\n  git verify-tag teddy/signed/add-auth      so does git\n  git push origin refs/teddy/signed/add-auth"
)]
pub(super) struct Args {
    /// The session; the one in use if omitted
    #[arg(value_name = "SESSION", add = complete::with(complete::sessions))]
    session: Option<String>,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.project()?;
    let session = match &args.session {
        Some(name) => SessionName::own_from_address(name)?,
        None => project.session()?,
    };
    let passphrase = match app.is_attended() {
        true => Passphrase::Ask,
        false => Passphrase::Never,
    };

    let result = sign_session(
        &project,
        &session,
        passphrase,
        app.user(&project, false).as_mut(),
    )?;
    if app.global.json {
        app.print_json(&result)?;
    } else {
        let turns = match result.turn {
            0 => "no turn yet".to_owned(),
            1 => "turn 1".to_owned(),
            last => format!("turns 1-{last}"),
        };
        app.note(&format!(
            "Signed `{session}`, {turns}: {}",
            result.reference
        ));
    }

    Ok(exit::SUCCESS.into())
}
