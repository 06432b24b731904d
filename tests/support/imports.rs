//! Which file of a crate uses which other file of it, read from the source. A re-export counts as
//! its definition: whoever imports `super::Plan` depends on the file that defines `Plan`, not on
//! the `mod.rs` that passes it on. Code under `#[cfg(test)]` does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{Attribute, Item, UseTree, Visibility};

/// One file uses something of another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Import {
    /// The file that uses it, relative to the repository.
    pub(crate) from: String,
    /// The file that defines it.
    pub(crate) to: String,
    /// As it is written in the source.
    pub(crate) path: String,
}

type Name = Vec<String>;

/// What one module has, in a file of its own or not.
#[derive(Debug, Default)]
struct Module {
    file: String,
    definitions: BTreeSet<String>,
    /// Local name, and the path that it stands for.
    imports: BTreeMap<String, Name>,
    globs: Vec<Name>,
    /// Paths that this module uses.
    uses: BTreeSet<Name>,
}

/// The imports between the files of the crate whose `lib.rs` is in `source`.
pub(crate) fn of_crate(root: &Path, source: &Path) -> Vec<Import> {
    let mut modules = BTreeMap::new();
    if source.join("lib.rs").exists() {
        read_file(root, &source.join("lib.rs"), source, Vec::new(), &mut modules);
    }
    let mut found = BTreeSet::new();
    for (name, module) in &modules {
        for used in &module.uses {
            if let Some(target) = resolve(&modules, name, used, 0)
                && !is_bare_module(&modules[&target], &target, used)
                && modules[&target].file != module.file
            {
                found.insert(Import {
                    from: module.file.clone(),
                    to: modules[&target].file.clone(),
                    path: used.join("::"),
                });
            }
        }
    }
    found.into_iter().collect()
}

/// Whether a path is the name of a module alone, which uses nothing of it, as in
/// `pub(in crate::checks)` or `use super::names`.
fn is_bare_module(module: &Module, name: &Name, used: &Name) -> bool {
    name.last() == used.last() && used.last().is_none_or(|last| !module.definitions.contains(last))
}

fn read_file(root: &Path, file: &Path, folder: &Path, name: Name, modules: &mut BTreeMap<Name, Module>) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let shown = file.strip_prefix(root).unwrap_or(file).to_string_lossy().trim_start_matches("./").to_owned();
    read_items(root, &shown, folder, name, parsed.items, modules);
}

fn read_items(
    root: &Path,
    file: &str,
    folder: &Path,
    name: Name,
    items: Vec<Item>,
    modules: &mut BTreeMap<Name, Module>,
) {
    let mut module = Module { file: file.to_owned(), ..Module::default() };
    for item in items {
        match item {
            Item::Mod(child) if is_test(&child.attrs) => {}
            Item::Mod(child) => {
                let child_name: Name = [name.clone(), vec![child.ident.to_string()]].concat();
                let child_folder = folder.join(child.ident.to_string());
                match child.content {
                    Some((_, items)) => read_items(root, file, &child_folder, child_name, items, modules),
                    None => {
                        let candidates: [PathBuf; 2] =
                            [child_folder.join("mod.rs"), folder.join(format!("{}.rs", child.ident))];
                        if let Some(found) = candidates.iter().find(|candidate| candidate.exists()) {
                            read_file(root, found, &child_folder, child_name, modules);
                        }
                    }
                }
            }
            Item::Use(item) if is_test(&item.attrs) => {}
            Item::Use(item) => {
                let mut leaves = Vec::new();
                flatten(&item.tree, Vec::new(), &mut leaves);
                for (local, path) in leaves {
                    // A re-export is no use of its own.
                    if matches!(item.vis, Visibility::Inherited) {
                        module.uses.insert(path.clone());
                    }
                    match local.as_str() {
                        "*" => module.globs.push(path),
                        "_" => {}
                        _ => {
                            module.imports.insert(local, path);
                        }
                    }
                }
            }
            other => {
                if attributes(&other).is_some_and(is_test) {
                    continue;
                }
                if let Some(defined) = defined(&other) {
                    module.definitions.insert(defined);
                }
                paths(other.to_token_stream(), &mut module.uses);
            }
        }
    }
    modules.insert(name, module);
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.to_token_stream().to_string().replace(' ', "");
        text.starts_with("#[cfg(") && text.contains("test") && !text.contains("not(test")
    })
}

fn attributes(item: &Item) -> Option<&[Attribute]> {
    Some(match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        _ => return None,
    })
}

fn defined(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        _ => return None,
    })
}

/// The names that a `use` brings in, each with its whole path.
fn flatten(tree: &UseTree, before: Name, leaves: &mut Vec<(String, Name)>) {
    match tree {
        UseTree::Path(path) => {
            flatten(&path.tree, [before, vec![path.ident.to_string()]].concat(), leaves);
        }
        UseTree::Name(name) if name.ident == "self" => {
            leaves.push((before.last().cloned().unwrap_or_default(), before));
        }
        UseTree::Name(name) => {
            let local = name.ident.to_string();
            leaves.push((local.clone(), [before, vec![local]].concat()));
        }
        UseTree::Rename(rename) => {
            leaves.push((rename.rename.to_string(), [before, vec![rename.ident.to_string()]].concat()));
        }
        UseTree::Glob(_) => leaves.push(("*".to_owned(), before)),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before.clone(), leaves)),
    }
}

/// Everything of the form `a::b` in a piece of code, the arguments of macros included.
fn paths(tokens: TokenStream, found: &mut BTreeSet<Name>) {
    let mut path: Name = Vec::new();
    let mut colons = 0;
    let mut finish = |path: &mut Name| {
        if path.len() > 1 {
            found.insert(std::mem::take(path));
        }
        path.clear();
    };
    let mut groups = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
            TokenTree::Ident(ident) => {
                if colons != 2 {
                    finish(&mut path);
                }
                path.push(ident.to_string());
                colons = 0;
            }
            other => {
                finish(&mut path);
                colons = 0;
                if let TokenTree::Group(group) = other {
                    groups.push(group.stream());
                }
            }
        }
    }
    finish(&mut path);
    groups.into_iter().for_each(|group| paths(group, found));
}

/// The module that defines what `path` means inside `module`, if it is one of this crate.
fn resolve(modules: &BTreeMap<Name, Module>, module: &Name, path: &Name, depth: usize) -> Option<Name> {
    if depth > 16 {
        return None;
    }
    let mut here = module.clone();
    let mut rest = path.as_slice();
    match rest.first()?.as_str() {
        "crate" => {
            here.clear();
            rest = &rest[1..];
        }
        "self" => rest = &rest[1..],
        "super" => {
            while rest.first().is_some_and(|name| name == "super") {
                here.pop();
                rest = &rest[1..];
            }
        }
        first => {
            let known = &modules[&here];
            let child: Name = [here.clone(), vec![first.to_owned()]].concat();
            if !(modules.contains_key(&child)
                || known.imports.contains_key(first)
                || known.definitions.contains(first))
            {
                return None;
            }
        }
    }
    while let Some(name) = rest.first() {
        let known = modules.get(&here)?;
        let child: Name = [here.clone(), vec![name.clone()]].concat();
        if modules.contains_key(&child) {
            here = child;
            rest = &rest[1..];
        } else if known.definitions.contains(name) {
            return Some(here);
        } else if let Some(target) = known.imports.get(name) {
            return resolve(modules, &here, &[target.as_slice(), &rest[1..]].concat(), depth + 1);
        } else {
            // `use child::*`: whichever child defines it.
            let glob = known.globs.iter().find_map(|glob| {
                let target = resolve(modules, &here, glob, depth + 1)?;
                modules[&target].definitions.contains(name).then_some(target)
            });
            return glob.or(Some(here));
        }
    }
    Some(here)
}

/// The groups of files that reach each other, each group sorted.
pub(crate) fn circles(graph: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let reach = |start: &str| {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&str> = vec![start];
        while let Some(file) = open.pop() {
            for next in graph.get(file).into_iter().flatten() {
                if seen.insert(next.as_str()) {
                    open.push(next);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|file| (file.as_str(), reach(file))).collect();
    let mut found = BTreeSet::new();
    for (file, others) in &reached {
        let circle: Vec<String> = others
            .iter()
            .filter(|other| reached.get(*other).is_some_and(|back| back.contains(file)))
            .map(|other| (*other).to_owned())
            .collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}
