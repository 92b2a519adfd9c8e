//! What is wrong with a document of a change, with the line.

use std::fmt;

use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The document cannot be used.
    High,
    /// It can be used; something is missing that a reader would want.
    Low,
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The document.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.severity == Severity::High {
            "error"
        } else {
            "warning"
        };
        write!(f, "{}:{}: {word}: {}", self.file, self.line, self.message)
    }
}

/// Collects the mistakes of one document.
#[derive(Debug)]
pub struct Findings<'a> {
    /// The document.
    file: &'a str,
    /// What was found.
    found: Vec<Finding>,
}

impl<'a> Findings<'a> {
    /// Starts with none.
    pub fn of(file: &'a str) -> Findings<'a> {
        Findings {
            file,
            found: Vec::new(),
        }
    }

    /// Adds a mistake that makes the document useless.
    pub fn high(&mut self, line: usize, message: impl Into<String>) {
        self.add(Severity::High, line, message.into());
    }

    /// Adds a mistake that does not.
    pub fn low(&mut self, line: usize, message: impl Into<String>) {
        self.add(Severity::Low, line, message.into());
    }

    /// Adds a mistake.
    fn add(&mut self, severity: Severity, line: usize, message: String) {
        self.found.push(Finding {
            file: self.file.to_owned(),
            line: line.max(1),
            severity,
            message,
        });
    }

    /// Returns the mistakes, by line.
    pub fn done(mut self) -> Vec<Finding> {
        self.found.sort_by_key(|finding| finding.line);
        self.found
    }
}

/// Returns whether a document can be used.
pub fn is_usable(findings: &[Finding]) -> bool {
    findings
        .iter()
        .all(|finding| finding.severity != Severity::High)
}
