//! All kinds of texts against the reference tokenizer.

#[path = "../it/cli/tokens.rs"]
mod tokens;
