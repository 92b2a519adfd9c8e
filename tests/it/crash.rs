//! Crashes, full disks and concurrent processes.

mod concurrency;
mod crowd;
mod damaged_state;
mod disk;
mod faults;
mod flushes;
mod kills;
mod unreadable;
