//! Opens an address in the user's browser.
//!
//! Whoever may list processes sees their arguments, so that an address with a secret in it is not
//! one of them: the browser is given a file that only its user can read, which leads there.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::process;
use super::token::token;

/// The program that opens what the user's own settings say.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// A file that leads to an address; gone when this is dropped.
#[derive(Debug)]
pub struct Lead {
    /// The file.
    path: PathBuf,
}

/// Opens an address, by way of a file in a folder of the user's own.
///
/// # Errors
/// The file cannot be written, or no program opens it.
pub fn open(url: &str, folder: &Path) -> io::Result<Lead> {
    super::file::make_folders(folder)?;
    let path = folder.join(format!("open-{}.html", token()));
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    let lead = Lead { path };
    // Whatever the mask of new files is.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(leading(url).as_bytes())?;
    drop(file);

    process::start_apart(process::command(OPENER).arg(&lead.path))?;
    Ok(lead)
}

/// Returns the page that leads to an address, which has nothing in it that a page reads otherwise.
fn leading(url: &str) -> String {
    format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0;url={url}\"><title>TeDDy</title>\
         <a href=\"{url}\">TeDDy</a>\n"
    )
}

impl Drop for Lead {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
