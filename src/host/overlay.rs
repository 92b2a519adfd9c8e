//! A view of a folder that takes every change in another: an overlay, which only the commands that
//! are started in it see.
//!
//! A process of our own holds the view, in namespaces of its own, for as long as we hold the other
//! end of a socket. So nothing is ever mounted for anybody else, and nothing stays mounted after a
//! crash. [`super::supervisor`] takes commands into it; we reach it by the process.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, Stdio};

use serde::{Deserialize, Serialize};

use super::file::{Root, make_folders, reason, remove_below};
use super::raw::RawText;
use super::sandbox::OverlayFolders;
use super::{descriptors, env, fault, process, sandbox, supervisor};

/// The first argument of the process that holds a view.
const WORD: &str = "__overlay";
/// The attribute of a folder that hides the one below.
const OPAQUE: &str = "user.overlay.opaque";
/// What is said where the process is not there any more.
const GONE: &str = "the process that shows commands your files was ended from outside";
/// Its answer is no longer than this.
const MAX_ANSWER: u64 = 64 << 10;

/// The folders as they are sent.
#[derive(Serialize, Deserialize)]
struct OverlayOrder {
    /// [`OverlayFolders`] in order.
    folders: [RawText; 4],
    /// A folder of the upper one that must hide the one below.
    opaque: RawText,
}

/// A process that can hold a view. Dropping it takes the view away.
#[derive(Debug)]
pub struct OverlayHolder {
    /// The process.
    process: Child,
    /// Our end of the socket; the process ends when it closes.
    channel: Option<UnixStream>,
}

/// A view while it is there. Dropping it takes it away.
#[derive(Debug)]
pub struct Overlay {
    /// What holds it.
    holder: OverlayHolder,
    /// Where the whole is seen in it.
    at: PathBuf,
}

impl OverlayHolder {
    /// Starts the process, which takes some time to be there.
    ///
    /// # Errors
    /// Why this machine cannot.
    pub fn start() -> Result<OverlayHolder, String> {
        allowed()?;
        OverlayHolder::spawn().map_err(|error| reason(&error))
    }

    /// Starts the process.
    fn spawn() -> io::Result<OverlayHolder> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = process::command(env::current_exe()?);
        command
            .arg(WORD)
            .current_dir("/")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = command.spawn()?;
        supervisor::know(process.id());
        Ok(OverlayHolder {
            process,
            channel: Some(ours),
        })
    }

    /// Has the process mount a view; the folder called `opaque` of the upper one hides the one
    /// below.
    ///
    /// # Errors
    /// Why this machine cannot; nothing is left of the attempt.
    pub fn mount(mut self, folders: &OverlayFolders, opaque: &str) -> Result<Overlay, String> {
        let folder = |path: &Path| RawText::from(path.to_owned().into_os_string());
        self.ask(&OverlayOrder {
            folders: [&folders.lower, &folders.upper, &folders.work, &folders.at]
                .map(|path| folder(path)),
            opaque: OsString::from(opaque).into(),
        })?;
        let overlay = Overlay {
            holder: self,
            at: folders.at.clone(),
        };
        // What cannot be reached is of no use to us.
        overlay.root().map_err(|error| reason(&error))?;
        Ok(overlay)
    }

    /// Sends the process an order, and waits for its answer.
    fn ask(&mut self, order: &OverlayOrder) -> Result<(), String> {
        let Some(channel) = &mut self.channel else {
            return Err(GONE.to_owned());
        };
        let mut asked = || {
            let mut line = serde_json::to_vec(order)?;
            line.push(b'\n');
            channel.write_all(&line)?;
            let mut answer = String::new();
            BufReader::new((&*channel).take(MAX_ANSWER)).read_line(&mut answer)?;
            Ok::<_, io::Error>(answer)
        };

        let answer = asked().map_err(|error| reason(&error))?;
        match serde_json::from_str::<Result<(), String>>(&answer) {
            Ok(mounted) => mounted,
            Err(_) => Err("the process that holds the view did not answer".to_owned()),
        }
    }
}

impl Overlay {
    /// Returns the number of the process that holds the view.
    pub fn holder(&self) -> u32 {
        self.holder.process.id()
    }

    /// Opens the folder as it is seen.
    ///
    /// # Errors
    /// The process is gone.
    pub fn root(&self) -> io::Result<Root> {
        Root::open(&within(self.holder(), &self.at)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::other(GONE),
            _ => error,
        })
    }

    /// Begins to take the view away; it is gone when this is dropped.
    pub fn release(&mut self) {
        self.holder.channel = None;
    }
}

impl Drop for OverlayHolder {
    fn drop(&mut self) {
        self.channel = None;
        let _ = self.process.wait();
        supervisor::forget(self.process.id());
    }
}

/// Returns the path that leads us to what is at a path where another process is.
pub fn within(holder: u32, path: &Path) -> PathBuf {
    let below = path.strip_prefix("/").unwrap_or(path);
    Path::new("/proc")
        .join(holder.to_string())
        .join("root")
        .join(below)
}

/// Returns whether overlays are tried at all.
///
/// # Errors
/// Why not.
pub fn allowed() -> Result<(), String> {
    if !supervisor::gives_private_views() {
        return Err("commands get no view of their own here".to_owned());
    }
    match fault::emulated("no-overlay") {
        Some(_) => Err("kernel without overlays".to_owned()),
        None => Ok(()),
    }
}

/// Tries whether an overlay can be mounted with its layer in a folder, which is made.
///
/// # Errors
/// Why this machine cannot.
pub fn probe(folder: &Path) -> Result<(), String> {
    allowed()?;
    let tried = || {
        make_folders(folder)?;
        let place = tempfile::Builder::new()
            .prefix(".teddy-probe-")
            .tempdir_in(folder)?;
        let below = |name: &str| place.path().join(name);
        let folders = OverlayFolders {
            lower: below("lower"),
            upper: below("upper"),
            work: below("work"),
            at: below("at"),
        };
        for made in ["lower/hidden/file", "upper/hidden", "work", "at"] {
            make_folders(&below(made))?;
        }
        hide_below(&folders.upper.join("hidden"))?;
        let holder = OverlayHolder::start();
        let mounted = holder.and_then(|holder| holder.mount(&folders, "hidden"));
        Ok::<_, io::Error>((mounted, place))
    };

    let (mounted, place) = tried().map_err(|error| reason(&error))?;
    let mounted = mounted.map(drop);
    // The kernel leaves folders in it that have to be opened up before they can be removed.
    let place = place.keep();
    if let (Ok(root), Some(name)) = (Root::open(folder), place.file_name()) {
        let _ = remove_below(&root, name);
    }
    mounted
}

/// Lets a folder of a layer hide the one below.
///
/// # Errors
/// The file system has no attributes for it.
pub fn hide_below(folder: &Path) -> io::Result<()> {
    let flags = rustix::fs::XattrFlags::empty();
    Ok(rustix::fs::lsetxattr(folder, OPAQUE, b"y", flags)?)
}

/// Returns whether a folder of a layer hides the one below.
pub fn hides_below(folder: &Path) -> bool {
    let mut value = [0; 8];
    let length = rustix::fs::lgetxattr(folder, OPAQUE, &mut value);
    length.is_ok_and(|length| length > 0 && value[0] == b'y')
}

/// Lets a folder of a layer show the one below again.
pub fn show_below(folder: &Path) {
    // It has no such attribute, or is not there any more.
    let _ = rustix::fs::lremovexattr(folder, OPAQUE);
}

/// Becomes the process that holds a view if the arguments (the program's name first) say so; the
/// main function calls this before anything else. Returns nothing if they do not.
pub fn serve_if_asked(arguments: &[OsString]) -> Option<ExitCode> {
    if arguments.get(1)? != OsStr::new(WORD) {
        return None;
    }
    // Whoever asked has the reason already, or is gone.
    let _ = serve();
    Some(ExitCode::SUCCESS)
}

/// Takes an order from the socket that is the input, and holds the view until it closes.
fn serve() -> io::Result<()> {
    descriptors::keep_from_children();
    // The terminal's ctrl-c is for TeDDy alone.
    let _ = rustix::process::setsid();
    let mut channel = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut line = String::new();
    BufReader::new(channel.try_clone()?).read_line(&mut line)?;
    let order: OverlayOrder = serde_json::from_str(&line)?;
    let [lower, upper, work, at] = order
        .folders
        .map(|folder| PathBuf::from(folder.as_os_str()));

    let folders = OverlayFolders {
        lower,
        upper,
        work,
        at,
    };
    let mounted = sandbox::mount_overlay(&folders)
        .and_then(|()| check(&folders, Path::new(order.opaque.as_os_str())));
    let mut answer = serde_json::to_vec(&mounted)?;
    answer.push(b'\n');
    channel.write_all(&answer)?;
    if mounted.is_ok() {
        channel.read_to_end(&mut Vec::new())?;
    }

    Ok(())
}

/// Makes sure that a folder hides the one below.
fn check(folders: &OverlayFolders, opaque: &Path) -> Result<(), String> {
    let names = |folder: &Path| {
        let root = Root::open(&folder.join(opaque)).and_then(|root| root.names());
        root.map_err(|error| reason(&error))
    };
    if names(&folders.at)? == names(&folders.upper)? {
        return Ok(());
    }
    Err("the file system cannot hide what is below".to_owned())
}
