//! Overlay mounts: commands see the user's files, and their changes go to a separate layer.
//!
//! A child process holds the mount in its own user and mount namespaces until TeDDy closes the
//! socket to it. No other process sees the mount, and after a crash nothing stays mounted.
//! [`super::supervisor`] starts commands inside; TeDDy accesses the files through
//! `/proc/<holder>/root`.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, Stdio};

use serde::{Deserialize, Serialize};

use super::file::{Root, make_dirs, reason, remove_below};
use super::raw::RawText;
use super::sandbox::OverlayDirs;
use super::{env, fault, inherited, process, sandbox, supervisor};

/// First argument of the holder process.
const WORD: &str = "__overlay";
/// Marks a directory of the upper layer that hides the one below. The `user.` form works without
/// root (`userxattr`).
const OPAQUE: &str = "user.overlay.opaque";
const HOLDER_DIED: &str = "the process that shows commands your files was ended from outside";
/// In bytes.
const MAX_ANSWER: u64 = 64 << 10;

/// Sent to the holder as one line of JSON.
#[derive(Serialize, Deserialize)]
struct OverlayOrder {
    /// `lower`, `upper`, `work` and `at` of [`OverlayDirs`].
    folders: [RawText; 4],
    /// `shared` of [`OverlayDirs`].
    shared: Vec<(RawText, RawText)>,
    /// Name of an opaque directory in the upper layer. The holder checks that it hides the one
    /// below.
    opaque: RawText,
}

/// A process that can hold a mount. Dropping it ends the process, and with it the mount.
#[derive(Debug)]
pub struct OverlayHolder {
    process: Child,
    /// The process ends when this is closed.
    channel: Option<UnixStream>,
}

/// A mounted overlay. Dropping it unmounts it.
#[derive(Debug)]
pub struct Overlay {
    holder: OverlayHolder,
    at: PathBuf,
}

impl OverlayHolder {
    /// Starts the process without waiting for it, because that takes a while. The error explains
    /// why this machine cannot.
    pub fn start() -> Result<OverlayHolder, String> {
        allowed()?;
        OverlayHolder::spawn().map_err(|error| reason(&error))
    }

    fn spawn() -> io::Result<OverlayHolder> {
        let (parent_end, child_end) = UnixStream::pair()?;
        let mut command = process::command(env::current_exe()?);
        command
            .arg(WORD)
            .current_dir("/")
            .stdin(OwnedFd::from(child_end))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = command.spawn()?;
        // It has a session of its own, and would count as an orphan.
        supervisor::register_supervisor(process.id());
        Ok(OverlayHolder {
            process,
            channel: Some(parent_end),
        })
    }

    /// Mounts an overlay. The directory `opaque` of the upper layer must hide the one below. On
    /// failure nothing stays mounted.
    pub fn mount(mut self, dirs: &OverlayDirs, opaque: &str) -> Result<Overlay, String> {
        let raw = |path: &Path| RawText::from(path.to_owned().into_os_string());
        self.ask(&OverlayOrder {
            folders: [&dirs.lower, &dirs.upper, &dirs.work, &dirs.at].map(|path| raw(path)),
            shared: dirs
                .shared
                .iter()
                .map(|(from, to)| (raw(from), raw(to)))
                .collect(),
            opaque: OsString::from(opaque).into(),
        })?;
        let overlay = Overlay {
            holder: self,
            at: dirs.at.clone(),
        };
        // A mount that TeDDy cannot access is useless.
        overlay.root().map_err(|error| reason(&error))?;
        Ok(overlay)
    }

    fn ask(&mut self, order: &OverlayOrder) -> Result<(), String> {
        let Some(channel) = &mut self.channel else {
            return Err(HOLDER_DIED.to_owned());
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
    pub fn holder(&self) -> u32 {
        self.holder.process.id()
    }

    /// Path of the merged directory for this process.
    pub fn path(&self) -> PathBuf {
        path_in_overlay(self.holder(), &self.at)
    }

    /// Opens the merged directory. Fails if the holder has died.
    pub fn root(&self) -> io::Result<Root> {
        Root::open(&self.path()).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::other(HOLDER_DIED),
            _ => error,
        })
    }

    /// Starts unmounting without waiting. Dropping the value waits.
    pub fn release(&mut self) {
        self.holder.channel = None;
    }
}

impl Drop for OverlayHolder {
    fn drop(&mut self) {
        self.channel = None;
        let _ = self.process.wait();
        supervisor::unregister_supervisor(self.process.id());
    }
}

/// Returns the path at which `path` in the mount namespace of the process `holder` is accessible.
pub fn path_in_overlay(holder: u32, path: &Path) -> PathBuf {
    let rel_path = path.strip_prefix("/").unwrap_or(path);
    Path::new("/proc")
        .join(holder.to_string())
        .join("root")
        .join(rel_path)
}

/// Fails with the reason if overlays cannot be tried on this machine.
pub fn allowed() -> Result<(), String> {
    if !supervisor::gives_private_mounts() {
        return Err("commands get no view of their own here".to_owned());
    }
    match fault::emulated("no-overlay") {
        Some(_) => Err("kernel without overlays".to_owned()),
        None => Ok(()),
    }
}

/// Tests whether an overlay can be mounted with its layer in `dir`, which is created.
pub fn probe(dir: &Path) -> Result<(), String> {
    allowed()?;
    let tried = || {
        make_dirs(dir)?;
        let temp_dir = tempfile::Builder::new()
            .prefix(".teddy-probe-")
            .tempdir_in(dir)?;
        let subdir = |name: &str| temp_dir.path().join(name);
        let dirs = OverlayDirs {
            lower: subdir("lower"),
            upper: subdir("upper"),
            work: subdir("work"),
            at: subdir("at"),
            shared: Vec::new(),
        };
        for path in ["lower/hidden/file", "upper/hidden", "work", "at"] {
            make_dirs(&subdir(path))?;
        }
        set_opaque(&dirs.upper.join("hidden"))?;
        let holder = OverlayHolder::start();
        let mounted = holder.and_then(|holder| holder.mount(&dirs, "hidden"));
        Ok::<_, io::Error>((mounted, temp_dir))
    };

    let (mounted, temp_dir) = tried().map_err(|error| reason(&error))?;
    let mounted = mounted.map(drop);
    // The kernel leaves directories without permissions in `work`, which `TempDir` could not
    // remove.
    let temp_path = temp_dir.keep();
    if let (Ok(root), Some(name)) = (Root::open(dir), temp_path.file_name()) {
        let _ = remove_below(&root, name);
    }
    mounted
}

pub fn set_opaque(dir: &Path) -> io::Result<()> {
    let flags = rustix::fs::XattrFlags::empty();
    Ok(rustix::fs::lsetxattr(dir, OPAQUE, b"y", flags)?)
}

pub fn is_opaque(dir: &Path) -> bool {
    let mut value = [0; 8];
    let length = rustix::fs::lgetxattr(dir, OPAQUE, &mut value);
    length.is_ok_and(|length| length > 0 && value[0] == b'y')
}

pub fn clear_opaque(dir: &Path) {
    // Fails if the directory has no such attribute or no longer exists.
    let _ = rustix::fs::lremovexattr(dir, OPAQUE);
}

/// Runs the holder process if the arguments (program name first) ask for it, else returns `None`.
/// `main` calls this before anything else.
pub fn serve_if_asked(arguments: &[OsString]) -> Option<ExitCode> {
    if arguments.get(1)? != OsStr::new(WORD) {
        return None;
    }
    // The socket reports errors. If that fails, TeDDy is gone.
    let _ = serve();
    Some(ExitCode::SUCCESS)
}

/// Mounts the overlay requested on stdin, and holds it until the socket is closed.
fn serve() -> io::Result<()> {
    inherited::keep_descriptors_from_children();
    // Ctrl-c at the terminal is handled by TeDDy.
    let _ = rustix::process::setsid();
    let mut channel = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut line = String::new();
    BufReader::new(channel.try_clone()?).read_line(&mut line)?;
    let order: OverlayOrder = serde_json::from_str(&line)?;
    let [lower, upper, work, at] = order.folders.map(|dir| PathBuf::from(dir.as_os_str()));
    let path = |text: &RawText| PathBuf::from(text.as_os_str());
    let shared = order.shared.iter();
    let shared = shared.map(|(from, to)| (path(from), path(to))).collect();

    let dirs = OverlayDirs {
        lower,
        upper,
        work,
        at,
        shared,
    };
    let mounted = sandbox::mount_overlay(&dirs)
        .and_then(|()| check(&dirs, Path::new(order.opaque.as_os_str())));
    let mut answer = serde_json::to_vec(&mounted)?;
    answer.push(b'\n');
    channel.write_all(&answer)?;
    if mounted.is_ok() {
        // Ends when TeDDy closes the socket or dies.
        channel.read_to_end(&mut Vec::new())?;
    }

    Ok(())
}

fn check(dirs: &OverlayDirs, opaque: &Path) -> Result<(), String> {
    // Commands must not see the user's `.git`, so check that the opaque directory hides it.
    let names = |dir: &Path| {
        let root = Root::open(&dir.join(opaque)).and_then(|root| root.names());
        root.map_err(|error| reason(&error))
    };
    if names(&dirs.at)? == names(&dirs.upper)? {
        return Ok(());
    }
    Err("the file system cannot hide what is below".to_owned())
}
