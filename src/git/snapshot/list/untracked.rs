//! Untracked files: taken, ignored, or left out for a reason.

use gix::objs::tree::EntryKind;

use super::{DirListing, ListedName};
use crate::git::snapshot::cache::{CacheOrigin, CachedName};
use crate::git::snapshot::entry::{inherited_entry, is_valid_link_name, is_valid_name};
use crate::git::snapshot::limits::Reason;
use crate::git::stat::NameKind;

impl DirListing<'_, '_> {
    /// Takes an untracked file, if it is not ignored and within the limits.
    pub(super) fn visit_untracked(&mut self, listed: &ListedName<'_>) -> anyhow::Result<bool> {
        let forced = self.scan.forced(&listed.path);
        if !self.is_forced(forced.is_some())
            && self.rules.is_ignored(self.scan, &listed.path, false)?
        {
            if matches!(listed.name, b".gitignore" | b".gitattributes") {
                let kind = if listed.name_stat.kind == NameKind::Link {
                    EntryKind::Link
                } else {
                    EntryKind::Blob
                };

                let null = self.scan.basis.root.kind().null();
                let entry = inherited_entry(listed.name, kind, null);
                self.entries.push(CachedName {
                    stat: listed.name_stat.stat,
                    origin: CacheOrigin::Watched,
                    ..entry
                });
            }

            return Ok(false);
        }

        let limits = self.scan.limits;
        let created = forced.and_then(|forced| forced.created);
        let is_large = listed.name_stat.kind == NameKind::File
            && listed.name_stat.size > limits.max_file_size
            && forced.is_none_or(|_| {
                created.is_some_and(|created| created.size != listed.name_stat.size)
            });
        let reason = match listed.name_stat.kind {
            NameKind::Special => Some(Reason::Special),
            _ if !is_valid_name(listed.name) => Some(Reason::Name),
            NameKind::Link if !is_valid_link_name(listed.name) => Some(Reason::MustNotBeLink),
            // With a content that is known, reading tells.
            _ if created.is_none() && limits.is_secret(&listed.path) => Some(Reason::Secret),
            _ if is_large => Some(Reason::TooLarge(listed.name_stat.size)),
            _ => None,
        };

        match reason {
            None => self.record(listed),
            Some(reason) => {
                self.leave_out(&listed.path, reason);
                Ok(false)
            }
        }
    }
}
