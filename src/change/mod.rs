//! A change: proposal, challenge, implementation, review, archive.
