//! Crashes, full disks and concurrent processes.

mod concurrency;
mod disk;
mod faults;
mod flushes;
mod kills;
mod unreadable;
