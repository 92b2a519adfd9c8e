//! Closes inherited file descriptors on exec. A command must not get them: an open file is not
//! subject to the sandbox.

/// Marks all descriptors except the first three close-on-exec, including inherited ones.
pub fn keep_from_children() {
    #[cfg(target_os = "linux")]
    {
        // `close_range` exists since Linux 5.9, and `CLOSE_RANGE_CLOEXEC` since 5.11.
        if system::close_range_on_exec().is_err() {
            open().into_iter().for_each(system::close_on_exec);
        }
    }
}

#[cfg(target_os = "linux")]
fn open() -> Vec<i32> {
    let listed = std::fs::read_dir("/proc/self/fd").map(|entries| {
        let numbers = entries.flatten();
        numbers
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect()
    });
    let all = || (0..MOST).collect::<Vec<i32>>();
    let numbers = listed.unwrap_or_else(|_| all());

    numbers.into_iter().filter(|number| *number > 2).collect()
}

// Number of descriptors to try without `/proc`.
#[cfg(target_os = "linux")]
const MOST: i32 = 1 << 16;

#[cfg(target_os = "linux")]
mod system {
    use std::io;

    #[expect(unsafe_code, reason = "no safe crate that we use has this call")]
    pub(super) fn close_range_on_exec() -> io::Result<()> {
        // SAFETY: the call takes only numbers. With this flag it closes nothing.
        let result = unsafe {
            libc::syscall(
                libc::SYS_close_range,
                3,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            )
        };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    #[expect(unsafe_code, reason = "the number has no owner here")]
    pub(super) fn close_on_exec(number: i32) {
        // SAFETY: `F_SETFD` takes only numbers, and fails if the descriptor is not open.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}
