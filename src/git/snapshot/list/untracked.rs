//! Untracked files: taken, ignored, or left out for a reason.

use gix::objs::tree::EntryKind;

use super::{FolderListing, ListedName};
use crate::git::snapshot::cache::{CacheOrigin, CachedName};
use crate::git::snapshot::entry::{inherited, is_link_name, is_name};
use crate::git::snapshot::limits::Reason;
use crate::git::stat::NameKind;

impl FolderListing<'_, '_> {
    /// Takes an untracked file, if it is not ignored and within the limits.
    pub(super) fn meet_untracked(&mut self, met: &ListedName<'_>) -> anyhow::Result<bool> {
        let forced = self.scan.forced(&met.path);
        if !self.is_forced(forced.is_some())
            && self.rules.is_ignored(self.scan, &met.path, false)?
        {
            if matches!(met.name, b".gitignore" | b".gitattributes") {
                let kind = if met.seen.kind == NameKind::Link {
                    EntryKind::Link
                } else {
                    EntryKind::Blob
                };

                let null = self.scan.basis.root.kind().null();
                let entry = inherited(met.name, kind, null);
                self.entries.push(CachedName {
                    stat: met.seen.stat,
                    standing: CacheOrigin::Watched,
                    ..entry
                });
            }

            return Ok(false);
        }

        let limits = self.scan.limits;
        let made = forced.and_then(|forced| forced.made);
        let is_large = met.seen.kind == NameKind::File
            && met.seen.size > limits.max_file_size
            && forced.is_none_or(|_| made.is_some_and(|made| made.size != met.seen.size));
        let reason = match met.seen.kind {
            NameKind::Special => Some(Reason::Special),
            _ if !is_name(met.name) => Some(Reason::Name),
            NameKind::Link if !is_link_name(met.name) => Some(Reason::MustNotBeLink),
            // With a content that is known, reading tells.
            _ if made.is_none() && limits.is_secret(&met.path) => Some(Reason::Secret),
            _ if is_large => Some(Reason::TooLarge(met.seen.size)),
            _ => None,
        };

        match reason {
            None => self.take(met),
            Some(reason) => {
                self.leave(&met.path, reason);
                Ok(false)
            }
        }
    }
}
