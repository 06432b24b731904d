//! What is wanted of an archive: one member, a folder, its libraries, or everything, and where each
//! goes below the destination.

use std::path::PathBuf;

/// A member, or several by one rule, and where they go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberPattern {
    rule: Rule,
    to: PathBuf,
    /// Only members with one of these in their names; empty: all.
    only: &'static [&'static str],
    /// An archive without any such member is as good.
    pub(super) optional: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    /// One member.
    File(String),
    /// All below this folder, which ends with `/`.
    Tree(String),
    /// The shared libraries directly in this folder; `*` stands for any one part.
    Libraries(Vec<String>),
    /// Everything.
    All,
}

impl MemberPattern {
    /// One member to one path below the destination.
    pub fn file(from: impl Into<String>, to: impl Into<PathBuf>) -> Self {
        Self::new(Rule::File(from.into()), to)
    }

    /// All members below a folder of the archive, to the same places below `to`.
    pub fn tree(from: &str, to: impl Into<PathBuf>) -> Self {
        Self::new(Rule::Tree(format!("{}/", from.trim_end_matches('/'))), to)
    }

    /// The shared libraries that lie directly in a folder of the archive; `*` in it stands for any
    /// one part of a path.
    pub fn libraries(folder: &str, to: impl Into<PathBuf>) -> Self {
        Self::new(Rule::Libraries(folder.split('/').map(str::to_owned).collect()), to)
    }

    /// All members, to the places that they name.
    pub fn all() -> Self {
        Self::new(Rule::All, "")
    }

    fn new(rule: Rule, to: impl Into<PathBuf>) -> Self {
        Self { rule, to: to.into(), only: &[], optional: false }
    }

    /// Only those whose names hold one of these texts.
    #[must_use]
    pub fn only(mut self, texts: &'static [&'static str]) -> Self {
        self.only = texts;
        self
    }

    /// Nothing is wrong when no member is picked by it.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// In words, for a message about what is missing.
    pub(super) fn shown(&self) -> String {
        match &self.rule {
            Rule::File(name) | Rule::Tree(name) => name.clone(),
            Rule::Libraries(folder) => format!("{}/*.so", folder.join("/")),
            Rule::All => "any file".to_owned(),
        }
    }

    /// Where a member goes, when it is picked.
    pub(super) fn place(&self, name: &str) -> Option<PathBuf> {
        if name.ends_with('/') || !(self.only.is_empty() || self.only.iter().any(|text| name.contains(text)))
        {
            return None;
        }
        match &self.rule {
            Rule::File(wanted) => (name == wanted).then(|| self.to.clone()),
            Rule::Tree(folder) => name.strip_prefix(folder.as_str()).map(|rest| self.to.join(rest)),
            Rule::All => Some(self.to.join(name)),
            Rule::Libraries(folder) => {
                let (path, file) = name.rsplit_once('/')?;
                let parts: Vec<&str> = path.split('/').collect();
                let there = parts.len() == folder.len()
                    && parts.iter().zip(folder).all(|(part, wanted)| wanted == "*" || part == wanted);
                let is_library = file.ends_with(".so") || file.contains(".so.");
                (there && is_library).then(|| self.to.join(file))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_places_its_members() {
        let place = |pick: MemberPattern, name: &str| {
            let place = pick.place(name)?.display().to_string();
            Some(place.replace(std::path::MAIN_SEPARATOR, "/"))
        };
        assert_eq!(place(MemberPattern::file("a/b", "c"), "a/b").as_deref(), Some("c"));
        assert_eq!(place(MemberPattern::tree("a", "c"), "a/b/d").as_deref(), Some("c/b/d"));
        assert_eq!(place(MemberPattern::tree("a", "c"), "ab/d"), None);
        assert_eq!(place(MemberPattern::all(), "a/b").as_deref(), Some("a/b"));
        assert_eq!(place(MemberPattern::all(), "a/"), None);
        let libraries = || MemberPattern::libraries("nvidia/*/lib", "lib");
        assert_eq!(place(libraries(), "nvidia/cublas/lib/libx.so.12").as_deref(), Some("lib/libx.so.12"));
        assert_eq!(place(libraries(), "nvidia/cublas/lib/libx.a"), None);
        assert_eq!(place(libraries(), "nvidia/cublas/lib/deep/libx.so"), None);
        assert_eq!(place(MemberPattern::tree("i", "l").only(&["icense"]), "i/RECORD"), None);
    }
}
