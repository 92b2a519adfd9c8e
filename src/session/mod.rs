//! Turns as commits: the values of a session and where they are stored.
