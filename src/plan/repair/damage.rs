//! Plans that are damaged by rule, and what must come of them.
