// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Circles of files: within a crate, a file must not import one that imports it, directly or
//! through others. Reads the tokens of [`crate::tree`]; the recorded list is kept by
//! [`crate::ratchet`].
//!
//! An import is every path that names another file of the crate: `use`, a path in an expression or
//! a type, a path in a macro. A re-export counts for the file that uses the name, not for the file
//! that passes it on, so that a parent module may re-export what its children define. `mod child;`
//! alone is no import, and tests do not count.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::room::without_tests;
use crate::tree::RustFile;

/// A path of modules from the crate's root, without `crate`.
type ModulePath = Vec<String>;

/// Each file that lies in a circle, and how many files that circle has.
pub fn count(files: &[RustFile]) -> BTreeMap<String, usize> {
    let mut crates: BTreeMap<&str, Vec<&RustFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_shipped()) {
        crates.entry(file.crate_folder()).or_default().push(file);
    }
    let mut counts = BTreeMap::new();
    for files in crates.values() {
        for circle in circles(&imports(files)) {
            let size = circle.len();
            counts.extend(circle.into_iter().map(|path| (path, size)));
        }
    }
    counts
}

/// What each file of one crate imports: paths of files, as [`RustFile::path`].
pub fn imports(files: &[&RustFile]) -> BTreeMap<String, BTreeSet<String>> {
    let sources: BTreeMap<ModulePath, Source> = files
        .iter()
        .filter_map(|file| Some((module_path(file)?, Source::read(file))))
        .collect();
    let tree = Tree { sources };
    let mut imports = BTreeMap::new();
    for (module, source) in &tree.sources {
        let passed_on = source.re_exports.iter().filter(|one| {
            one.name
                .as_ref()
                .is_some_and(|name| source.words.contains(name))
        });
        let named = source.paths.iter().chain(passed_on.map(|one| &one.path));
        let targets = named
            .filter_map(|path| tree.file_of(module, path, 0))
            .filter(|target| *target != source.file)
            .collect();
        imports.insert(source.file.clone(), targets);
    }
    imports
}

/// The module that a file is; `None` for the main programs beside a library.
fn module_path(file: &RustFile) -> Option<ModulePath> {
    let inside = file.path.split_once("/src/")?.1.strip_suffix(".rs")?;
    if inside == "lib" {
        return Some(Vec::new());
    }
    let parts: ModulePath = inside.split('/').map(str::to_owned).collect();
    (parts[0] != "bin").then_some(if parts == ["main"] { vec![] } else { parts })
}

/// What one file says about others.
struct Source {
    file: String,
    /// Paths that it names, as written.
    paths: Vec<ModulePath>,
    /// Names that it passes on.
    re_exports: Vec<ReExport>,
    /// All words outside of re-exports.
    words: BTreeSet<String>,
}

/// One name of a `pub use`; without a name for `*`.
struct ReExport {
    name: Option<String>,
    path: ModulePath,
}

impl Source {
    fn read(file: &RustFile) -> Self {
        let (re_exports, rest) = split_re_exports(without_tests(file.tokens.clone()));
        let mut children = BTreeSet::new();
        declared(&rest, &mut children);
        let mut reader = Reader {
            children: &children,
            paths: Vec::new(),
            words: BTreeSet::new(),
        };
        reader.read(rest, 0);
        let (paths, words) = (reader.paths, reader.words);
        Self {
            file: file.path.clone(),
            paths,
            re_exports,
            words,
        }
    }
}

/// The files of one crate by their modules.
struct Tree {
    sources: BTreeMap<ModulePath, Source>,
}

impl Tree {
    /// The file in which lies what `from` calls `path`; `None` where it is of another crate.
    fn file_of(&self, from: &ModulePath, path: &[String], depth: usize) -> Option<String> {
        let (mut at, rest) = self.start(from, path)?;
        let mut rest = rest.iter();
        let mut item = rest.next();
        while let Some(name) = item {
            let child: ModulePath = at.iter().chain([name]).cloned().collect();
            if !self.sources.contains_key(&child) {
                break;
            }
            at = child;
            item = rest.next();
        }
        let source = self.sources.get(&at)?;
        // Chosen: a name that is passed on more often than this goes round in a circle of its own.
        if let Some(name) = item.filter(|_| depth < 8) {
            let named = |one: &&ReExport| one.name.as_ref() == Some(name);
            if let Some(one) = source.re_exports.iter().find(named) {
                return self.file_of(&at, &one.path, depth + 1);
            }
        }
        Some(source.file.clone())
    }

    /// Where a path as written begins, and what is left of it.
    fn start<'a>(
        &self,
        from: &ModulePath,
        path: &'a [String],
    ) -> Option<(ModulePath, &'a [String])> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some((Vec::new(), rest)),
            "self" => Some((from.clone(), rest)),
            "super" => {
                let mut at = from.clone();
                at.pop()?;
                let mut rest = rest;
                while rest.first().is_some_and(|word| word == "super") {
                    at.pop()?;
                    rest = &rest[1..];
                }
                Some((at, rest))
            }
            child => {
                let at: ModulePath = from.iter().cloned().chain([child.to_owned()]).collect();
                self.sources.contains_key(&at).then_some((at, rest))
            }
        }
    }
}

/// Takes the re-exports out of the tokens of a file's top level.
fn split_re_exports(tokens: TokenStream) -> (Vec<ReExport>, TokenStream) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let (mut found, mut rest, mut index) = (Vec::new(), Vec::new(), 0);
    while index < tokens.len() {
        let body = use_after_visibility(&tokens[index..]);
        let Some(body) = body else {
            rest.push(tokens[index].clone());
            index += 1;
            continue;
        };
        let start = index + body;
        let length = tokens[start..]
            .iter()
            .position(|token| is_punct(token, ';'))
            .unwrap_or(tokens.len() - start);
        flatten(&[], &tokens[start..start + length], &mut found);
        index = start + length + 1;
    }
    (found, rest.into_iter().collect())
}

/// How many tokens stand before the tree of a `pub use` that begins here.
fn use_after_visibility(tokens: &[TokenTree]) -> Option<usize> {
    if !is_word(tokens.first()?, "pub") {
        return None;
    }
    let restricted = match tokens.get(1)? {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Parenthesis,
        _ => false,
    };
    let next = 1 + usize::from(restricted);
    is_word(tokens.get(next)?, "use").then_some(next + 1)
}

/// All names of one `use` tree.
fn flatten(before: &[String], tree: &[TokenTree], found: &mut Vec<ReExport>) {
    let mut path = before.to_vec();
    let mut name = None;
    let mut index = 0;
    while let Some(token) = tree.get(index) {
        index += 1;
        match token {
            TokenTree::Ident(word) if word == "as" => {
                name = tree.get(index).map(ToString::to_string);
                break;
            }
            TokenTree::Ident(word) => path.push(word.to_string()),
            TokenTree::Punct(punct) if punct.as_char() == '*' => {
                return found.push(ReExport { name: None, path });
            }
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for part in inner.split(|token| is_punct(token, ',')) {
                    flatten(&path, part, found);
                }
                return;
            }
            _ => {}
        }
    }
    if path.len() > before.len() {
        if path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let name = name.or_else(|| path.last().cloned());
        found.push(ReExport { name, path });
    }
}

/// The modules that a file declares without writing them out.
fn declared(tokens: &TokenStream, found: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    for three in tokens.windows(3) {
        if is_word(&three[0], "mod") && is_punct(&three[2], ';') {
            found.insert(three[1].to_string());
        }
    }
}

/// Collects the paths of a file that may name another one.
struct Reader<'a> {
    children: &'a BTreeSet<String>,
    paths: Vec<ModulePath>,
    words: BTreeSet<String>,
}

impl Reader<'_> {
    /// `inline` is how many modules written out in the file are around `tokens`.
    fn read(&mut self, tokens: TokenStream, inline: usize) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut index = 0;
        while let Some(token) = tokens.get(index) {
            match token {
                TokenTree::Group(group) => {
                    let is_module = index >= 2
                        && is_word(&tokens[index - 2], "mod")
                        && group.delimiter() == Delimiter::Brace;
                    self.read(group.stream(), inline + usize::from(is_module));
                }
                TokenTree::Ident(word) => {
                    self.words.insert(word.to_string());
                    let in_path = index > 1 && tokens[index - 2..index].iter().all(is_colon);
                    if !in_path && self.begins_path(&word.to_string()) {
                        self.path(&[], &tokens[index..], inline);
                    }
                }
                _ => {}
            }
            index += 1;
        }
    }

    fn begins_path(&self, word: &str) -> bool {
        matches!(word, "crate" | "self" | "super") || self.children.contains(word)
    }

    fn path(&mut self, before: &[String], tokens: &[TokenTree], inline: usize) {
        let mut path = before.to_vec();
        let mut index = 0;
        while let Some(TokenTree::Ident(word)) = tokens.get(index) {
            path.push(word.to_string());
            let colons = tokens.get(index + 1..index + 3);
            if !colons.is_some_and(|two| two.iter().all(is_colon)) {
                break;
            }
            index += 3;
        }
        if let Some(TokenTree::Group(group)) = tokens.get(index).filter(|_| index > 0)
            && group.delimiter() == Delimiter::Brace
        {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            for part in inner.split(|token| is_punct(token, ',')) {
                self.path(&path, part, inline);
            }
            return;
        }
        // A lone `self` is a value, or the module that the path before it names.
        if path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if path.len() > 1 {
            self.paths.push(outwards(path, inline));
        }
    }
}

/// The path as it would read outside the `inline` modules around it.
fn outwards(mut path: ModulePath, inline: usize) -> ModulePath {
    for _ in 0..inline {
        if path[0] == "super" {
            path.remove(0);
        }
    }
    if !path.is_empty() && matches!(path[0].as_str(), "crate" | "self" | "super") {
        return path;
    }
    path.insert(0, "self".to_owned());
    path
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

fn is_punct(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == character)
}

fn is_colon(token: &TokenTree) -> bool {
    is_punct(token, ':')
}

/// The sets of two and more nodes that reach each other.
fn circles(imports: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = imports
        .keys()
        .map(|file| (file, reach(imports, file)))
        .collect();
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for (file, from_here) in &reached {
        let circle: Vec<String> = from_here
            .iter()
            .filter(|other| reached[**other].contains(file))
            .map(|other| (*other).clone())
            .collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

/// All that `file` leads to.
fn reach<'a>(
    imports: &'a BTreeMap<String, BTreeSet<String>>,
    file: &'a String,
) -> BTreeSet<&'a String> {
    let mut seen = BTreeSet::new();
    let mut open = vec![file];
    while let Some(at) = open.pop() {
        let next = imports[at]
            .iter()
            .filter(|next| imports.contains_key(*next));
        open.extend(next.filter(|next| seen.insert(*next)));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> BTreeMap<String, usize> {
        let files: Vec<RustFile> = files
            .iter()
            .map(|(path, text)| RustFile::parse(path, text).unwrap())
            .collect();
        count(&files)
    }

    fn sizes(counts: &BTreeMap<String, usize>) -> Vec<usize> {
        counts.values().copied().collect()
    }

    #[test]
    fn a_circle_is_found_however_the_other_file_is_named() {
        let b = ("crates/x/src/b.rs", "use crate::a::A;");
        for a in [
            "use crate::b::B;",
            "use crate::{c, b::{self, B}};",
            "fn f() { crate::b::f(); }",
            "use super::b;",
            "macro_rules! m { () => { $crate::b::f() } }",
            "mod inner { use super::super::b::B; }",
            "mod inner { fn f(b: &crate::b::B, c: crate::c::C) {} }",
            "struct A { b: crate::b::B }",
        ] {
            let counts = found(&[
                ("crates/x/src/lib.rs", "mod a; mod b;"),
                ("crates/x/src/a.rs", a),
                b,
            ]);
            assert_eq!(sizes(&counts), [2, 2], "{a}");
        }
    }

    #[test]
    fn one_way_tests_comments_and_other_crates_make_no_circle() {
        let b = ("crates/x/src/b.rs", "use crate::a::A;");
        for a in [
            "// use crate::b::B;\nconst B: &str = \"crate::b::B\";",
            "#[cfg(test)]\nmod tests { use crate::b::B; }",
            "use other::b::B;",
            "fn f() { self.b.g(); }",
            "mod inner { use super::b::B; }",
        ] {
            let counts = found(&[("crates/x/src/a.rs", a), b]);
            assert_eq!(counts, BTreeMap::new(), "{a}");
        }
        let elsewhere = ("crates/y/src/b.rs", "use crate::a::A;");
        assert_eq!(
            found(&[("crates/x/src/a.rs", "use crate::b::B;"), elsewhere]).len(),
            0
        );
    }

    #[test]
    fn circles_go_through_several_files_and_are_told_apart() {
        let counts = found(&[
            ("crates/x/src/a.rs", "use crate::b::B;"),
            ("crates/x/src/b.rs", "use crate::c::C;"),
            ("crates/x/src/c.rs", "use crate::a::A; use crate::d;"),
            ("crates/x/src/d.rs", "use crate::e::E;"),
            ("crates/x/src/e.rs", "use crate::d::D;"),
        ]);
        assert_eq!(sizes(&counts), [3, 3, 3, 2, 2]);
    }

    #[test]
    fn a_re_export_counts_for_who_uses_it() {
        let lib = (
            "crates/x/src/lib.rs",
            "mod a; mod b; pub use a::A; pub use crate::b::B;",
        );
        let parent_only = found(&[
            lib,
            ("crates/x/src/a.rs", ""),
            ("crates/x/src/b.rs", "use crate::A;"),
        ]);
        assert_eq!(parent_only, BTreeMap::new());
        let both = found(&[
            lib,
            ("crates/x/src/a.rs", "use crate::B;"),
            ("crates/x/src/b.rs", "use super::A;"),
        ]);
        assert_eq!(
            both.keys().collect::<Vec<_>>(),
            ["crates/x/src/a.rs", "crates/x/src/b.rs"]
        );
        let used = "mod a; pub use a::A; pub struct L; fn f(_: A) {}";
        let used = found(&[
            ("crates/x/src/lib.rs", used),
            ("crates/x/src/a.rs", "use crate::L;"),
        ]);
        assert_eq!(sizes(&used), [2, 2]);
    }

    #[test]
    fn parents_and_children_that_need_each_other_are_a_circle() {
        let counts = found(&[
            (
                "crates/x/src/a.rs",
                "mod c; fn f() { c::g() } pub struct A;",
            ),
            ("crates/x/src/a/c.rs", "use super::A;"),
        ]);
        assert_eq!(sizes(&counts), [2, 2]);
    }
}
