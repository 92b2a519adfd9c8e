//! Opens a URL in the user's browser.
//!
//! Other users can see the arguments of a process, and the URL can contain a secret. The browser
//! therefore gets the path of a private HTML file that redirects to the URL.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::process;
use super::token::random_token;

const BROWSER_OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// A redirect page. Dropping it deletes the file.
#[derive(Debug)]
pub struct RedirectPage {
    path: PathBuf,
}

/// Opens `url` through a redirect page that is written to the directory `folder`.
pub fn open_in_browser(url: &str, dir: &Path) -> io::Result<RedirectPage> {
    super::file::make_dirs(dir)?;
    let path = dir.join(format!("open-{}.html", random_token()));
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    let lead = RedirectPage { path };
    // An unusual umask can remove the owner's bits as well.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(redirect_html(url).as_bytes())?;
    drop(file);

    process::spawn_detached(process::command_by_hand(BROWSER_OPENER).arg(&lead.path))?;
    Ok(lead)
}

/// `url` must not contain characters that HTML treats specially.
fn redirect_html(url: &str) -> String {
    format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0;url={url}\"><title>TeDDy</title>\
         <a href=\"{url}\">TeDDy</a>\n"
    )
}

impl Drop for RedirectPage {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
