//! `teddy web`: serves sessions to a browser.

use std::io;
use std::sync::Arc;

use anyhow::Context as _;

use super::app::App;
use crate::host::interrupt;
use crate::host::serve::{listen, open_in_browser, random_token, serve};
use crate::project::project_name;
use crate::text::hint::{error_with_hint, with_hint};
use crate::ui::web::{Site, WebGuard};

/// Browse sessions in a web browser
///
/// Serves pages from this machine, for this machine only, until ctrl-c: all sessions and their
/// branches, each turn with its request, plan, report, changes and output, what it cost, turns side
/// by side, and a search. Nothing can be changed there. The pages stay up to date while a session
/// runs. The address contains a secret: anyone who knows it can read what your sessions recorded
/// for as long as the server runs.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy web                  prints the address\n  teddy web --open           also opens it in the browser\n  teddy web --port 8080"
)]
pub(super) struct Args {
    /// The port; any that is free if omitted
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Open the address in the browser
    #[arg(long)]
    open: bool,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<()> {
    let project = app.record()?;
    let listener = listen(args.port).map_err(|error| unbound(error, args.port))?;
    let port = listener.local_addr().context("listening")?.port();
    let user_dirs = app.user_dirs()?;
    let site = Site {
        guard: WebGuard {
            token: random_token(),
            port,
        },
        name: project_name(&project),
        dir: app.dir()?,
        user_dirs: user_dirs.clone(),
        options: app.project_options()?,
    };
    drop(project);

    let url = site.guard.url();
    if app.global.json {
        app.print_json(&serde_json::json!({ "url": url }))?;
    } else {
        app.print(format!("{url}\n"))?;
    }
    app.note("Serving until ctrl-c. Until then, anyone with this address can read your sessions.");
    let lead = args.open.then(|| open_in_browser(&url, &user_dirs.cache));
    if let Some(Err(error)) = &lead {
        app.warn(&format!("cannot open a browser: {error}"));
    }

    serve(
        listener,
        Arc::new(move |asked: &_| site.answer(asked)),
        interrupt::requested,
    )
    .context("serving pages")?;
    drop(lead);
    app.note("Stopped.");
    Ok(())
}

/// Explains why a port is not available.
fn unbound(error: io::Error, port: u16) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::AddrInUse => error_with_hint(
            format!("port {port} is in use"),
            "leave `--port` out to use one that is free",
        ),
        io::ErrorKind::PermissionDenied => error_with_hint(
            format!("port {port} may not be used: {error}"),
            "leave `--port` out, or use a number from 1024 on",
        ),
        _ => with_hint(
            anyhow::Error::new(error).context("listening on 127.0.0.1"),
            "leave `--port` out to use one that is free",
        ),
    }
}
