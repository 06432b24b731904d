//! Patterns that select members of an archive (one file, a folder, its libraries, or everything) and map
//! them to paths in the destination.

use std::path::PathBuf;

/// A rule that matches members, and where they go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberPattern {
    rule: Rule,
    to: PathBuf,
    /// Only members whose names contain one of these; empty means all.
    only: &'static [&'static str],
    /// Whether matching nothing is fine.
    pub(super) optional: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    /// One member.
    File(String),
    /// Everything in this folder, which ends with `/`.
    Tree(String),
    /// The shared libraries directly in this folder; `*` matches one component.
    Libraries(Vec<String>),
    /// Everything.
    All,
}

impl MemberPattern {
    /// One member, to one path in the destination.
    pub fn file(from: impl Into<String>, to: impl Into<PathBuf>) -> Self {
        Self::new(Rule::File(from.into()), to)
    }

    /// All members in a folder of the archive, to the same relative paths in `to`.
    pub fn tree(from: &str, to: impl Into<PathBuf>) -> Self {
        Self::new(Rule::Tree(format!("{}/", from.trim_end_matches('/'))), to)
    }

    /// The shared libraries directly in a folder of the archive; `*` in it matches one component.
    pub fn libraries(folder: &str, to: impl Into<PathBuf>) -> Self {
        Self::new(Rule::Libraries(folder.split('/').map(str::to_owned).collect()), to)
    }

    /// All members, to their own paths.
    pub fn all() -> Self {
        Self::new(Rule::All, "")
    }

    fn new(rule: Rule, to: impl Into<PathBuf>) -> Self {
        Self { rule, to: to.into(), only: &[], optional: false }
    }

    /// Only members whose names contain one of these texts.
    #[must_use]
    pub fn only(mut self, texts: &'static [&'static str]) -> Self {
        self.only = texts;
        self
    }

    /// Matching nothing is not an error.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// The pattern, for a message about a missing member.
    pub(super) fn shown(&self) -> String {
        match &self.rule {
            Rule::File(name) | Rule::Tree(name) => name.clone(),
            Rule::Libraries(folder) => format!("{}/*.so", folder.join("/")),
            Rule::All => "any file".to_owned(),
        }
    }

    /// The path of a member in the destination, if it matches.
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
    fn each_rule_maps_its_members() {
        let place = |pattern: MemberPattern, name: &str| {
            let place = pattern.place(name)?.display().to_string();
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
