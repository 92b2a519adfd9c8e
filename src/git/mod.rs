//! The repository, and the only user of gix; knows nothing of sessions.
