// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the limits of [`crate::size`] can be met around: arguments packed into tuples, one type
//! written in many files, a type with too many methods, errors that are mere text. Each is counted;
//! [`crate::ratchet`] keeps the numbers.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use crate::size::ARGUMENTS;
use crate::tree::RustFile;

/// Chosen: a tuple of more fields, as an argument, is a struct without names.
pub const TUPLE_FIELDS: usize = 2;
/// Chosen: a type with more methods of its own is several types.
pub const METHODS: usize = 20;
/// Chosen: beside the file that defines a type, one more may implement something for it.
pub const FILES: usize = 2;

/// Functions that take tuples (or arrays) apart in their list of arguments, take tuples of more
/// than [`TUPLE_FIELDS`], or have more than [`ARGUMENTS`] arguments without the tuples; and how
/// many these are.
pub fn packed_arguments(files: &[RustFile]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for file in counted(files) {
        for function in &Items::of(file).functions {
            let unpacked = &function.unpacked;
            let is_wide = unpacked.widest > TUPLE_FIELDS
                || (unpacked.widest > 0 && unpacked.count > ARGUMENTS);
            if unpacked.is_taken_apart || is_wide {
                let place = format!("{} {}", file.path, function.name);
                let so_far: &mut usize = counts.entry(place).or_insert(0);
                *so_far = unpacked.count.max(*so_far);
            }
        }
    }
    counts
}

/// Types with more than [`METHODS`] methods outside of traits, and how many they have.
pub fn methods(files: &[RustFile]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for (name, parts) in types(files) {
        let sum: usize = parts.iter().map(|part| part.methods).sum();
        if sum > METHODS {
            counts.insert(name, sum);
        }
    }
    counts
}

/// Types whose `impl` blocks stand in more than [`FILES`] files, and how many files these are.
pub fn spread(files: &[RustFile]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for (name, parts) in types(files) {
        let places: BTreeSet<&str> = parts.iter().map(|part| part.file).collect();
        if places.len() > FILES {
            counts.insert(name, places.len());
        }
    }
    counts
}

/// Files of libraries with public functions that fail with a `String`, and how many functions these
/// are.
pub fn text_errors(files: &[RustFile]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for file in counted(files).filter(|file| !is_main_program(file)) {
        let functions = Items::of(file).functions;
        let count = functions.iter().filter(|one| one.fails_with_text).count();
        if count > 0 {
            counts.insert(file.path.clone(), count);
        }
    }
    counts
}

/// What crates and tools ship, without their tests.
fn counted(files: &[RustFile]) -> impl Iterator<Item = &RustFile> {
    files.iter().filter(|file| {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let is_test =
            name == "tests.rs" || name.ends_with("_tests.rs") || name.ends_with("_models.rs");
        file.is_shipped() && !file.path.starts_with("tests/") && !is_test
    })
}

/// A main program tells a person what went wrong, and nobody else.
fn is_main_program(file: &RustFile) -> bool {
    file.crate_folder() == "tools/weft"
        || file.path.ends_with("/main.rs")
        || file.path.contains("/src/bin/")
}

/// The `impl` blocks of one type in one file.
struct Part<'a> {
    file: &'a str,
    methods: usize,
}

/// The parts of each type, keyed by the file that defines it and its name.
fn types(files: &[RustFile]) -> BTreeMap<String, Vec<Part<'_>>> {
    let read: Vec<(&RustFile, Items)> =
        counted(files).map(|file| (file, Items::of(file))).collect();
    let mut parts: BTreeMap<String, Vec<Part<'_>>> = BTreeMap::new();
    for (file, items) in &read {
        for (name, methods) in &items.impls {
            let homes = read.iter().filter(|(other, items)| {
                other.crate_folder() == file.crate_folder() && items.types.contains(name)
            });
            // Where a crate has two types of one name, the one that shares more of the path is
            // meant.
            let home = homes.max_by_key(|(other, _)| common(&other.path, &file.path));
            if let Some((home, _)) = home {
                let part = Part {
                    file: &file.path,
                    methods: *methods,
                };
                parts
                    .entry(format!("{} {name}", home.path))
                    .or_default()
                    .push(part);
            }
        }
    }
    parts
}

fn common(one: &str, other: &str) -> usize {
    one.bytes()
        .zip(other.bytes())
        .take_while(|(a, b)| a == b)
        .count()
}

/// What one file defines outside of its tests.
#[derive(Default)]
struct Items {
    functions: Vec<Function>,
    types: BTreeSet<String>,
    /// The type of each `impl` block, and its methods where it is of no trait.
    impls: Vec<(String, usize)>,
}

struct Function {
    name: String,
    unpacked: Unpacked,
    /// Public, and its error is a `String`.
    fails_with_text: bool,
}

/// A list of arguments with the fields of tuples in place of the tuples.
#[derive(Default)]
struct Unpacked {
    count: usize,
    /// Fields of the widest tuple; 0 where there is none.
    widest: usize,
    /// The list gives names to the fields: they are arguments, and the tuple stands for nothing.
    is_taken_apart: bool,
}

impl Unpacked {
    fn of(signature: &syn::Signature) -> Self {
        let mut unpacked = Self::default();
        for input in &signature.inputs {
            if let syn::FnArg::Typed(argument) = input {
                let (fields, widest) = fields(&argument.ty);
                let names = names(&argument.pat);
                unpacked.count += fields.max(names);
                unpacked.widest = unpacked.widest.max(widest);
                unpacked.is_taken_apart |= names > 1;
            }
        }
        unpacked
    }
}

/// How many names a pattern gives to the parts of a tuple or an array.
fn names(pattern: &syn::Pat) -> usize {
    match pattern {
        syn::Pat::Tuple(tuple) => tuple.elems.len(),
        syn::Pat::Slice(slice) => slice.elems.len(),
        syn::Pat::Reference(reference) => names(&reference.pat),
        _ => 1,
    }
}

impl Items {
    fn of(file: &RustFile) -> Self {
        let mut items = Self::default();
        items.visit_file(&file.syntax);
        items
    }

    fn function(&mut self, signature: &syn::Signature, is_public: bool) {
        self.functions.push(Function {
            name: signature.ident.to_string(),
            unpacked: Unpacked::of(signature),
            fails_with_text: is_public && returns_text_error(&signature.output),
        });
    }
}

impl<'ast> Visit<'ast> for Items {
    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        if !is_test(&node.attrs) {
            visit::visit_item_mod(self, node);
        }
    }

    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        if !is_test(&node.attrs) {
            self.function(&node.sig, is_public(&node.vis));
            visit::visit_item_fn(self, node);
        }
    }

    fn visit_item_impl(&mut self, node: &'ast syn::ItemImpl) {
        if is_test(&node.attrs) {
            return;
        }
        if let Some(name) = type_name(&node.self_ty) {
            let is_method = |item: &&syn::ImplItem| match item {
                syn::ImplItem::Fn(one) => !is_test(&one.attrs),
                _ => false,
            };
            let methods = node.items.iter().filter(is_method).count();
            self.impls
                .push((name, if node.trait_.is_some() { 0 } else { methods }));
        }
        visit::visit_item_impl(self, node);
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        if !is_test(&node.attrs) {
            self.function(&node.sig, is_public(&node.vis));
            visit::visit_impl_item_fn(self, node);
        }
    }

    fn visit_trait_item_fn(&mut self, node: &'ast syn::TraitItemFn) {
        self.function(&node.sig, true);
        visit::visit_trait_item_fn(self, node);
    }

    fn visit_item_struct(&mut self, node: &'ast syn::ItemStruct) {
        self.types.insert(node.ident.to_string());
    }

    fn visit_item_enum(&mut self, node: &'ast syn::ItemEnum) {
        self.types.insert(node.ident.to_string());
    }

    fn visit_item_union(&mut self, node: &'ast syn::ItemUnion) {
        self.types.insert(node.ident.to_string());
    }
}

/// How many arguments a type stands for, and the fields of the widest tuple in it; 0 where it is no
/// tuple.
fn fields(argument: &syn::Type) -> (usize, usize) {
    match argument {
        syn::Type::Tuple(tuple) if !tuple.elems.is_empty() => {
            let inner: Vec<(usize, usize)> = tuple.elems.iter().map(fields).collect();
            let sum = inner.iter().map(|one| one.0).sum();
            let widest = inner.iter().map(|one| one.1).max().unwrap_or(0);
            (sum, widest.max(tuple.elems.len()))
        }
        syn::Type::Reference(reference) => fields(&reference.elem),
        syn::Type::Paren(inner) => fields(&inner.elem),
        syn::Type::Group(inner) => fields(&inner.elem),
        _ => (1, 0),
    }
}

fn returns_text_error(output: &syn::ReturnType) -> bool {
    let syn::ReturnType::Type(_, output) = output else {
        return false;
    };
    let syn::Type::Path(output) = &**output else {
        return false;
    };
    let Some(last) = output.path.segments.last() else {
        return false;
    };
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return false;
    };
    match arguments.args.iter().nth(1) {
        Some(syn::GenericArgument::Type(error)) if last.ident == "Result" => {
            type_name(error).is_some_and(|name| name == "String")
        }
        _ => false,
    }
}

fn type_name(of: &syn::Type) -> Option<String> {
    match of {
        syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
}

fn is_public(visibility: &syn::Visibility) -> bool {
    !matches!(visibility, syn::Visibility::Inherited)
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        let condition = || match &attribute.meta {
            syn::Meta::List(list) => list.tokens.to_string(),
            _ => String::new(),
        };
        path.is_ident("test")
            || path.is_ident("cfg")
                && condition()
                    .split(|c: char| !c.is_alphanumeric())
                    .any(|word| word == "test")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(files: &[(&str, &str)]) -> Vec<RustFile> {
        let parse = |(path, text): &(&str, &str)| RustFile::parse(path, text).unwrap();
        files.iter().map(parse).collect()
    }

    fn packed(text: &str) -> Vec<usize> {
        packed_arguments(&parse(&[("crates/x/src/a.rs", text)]))
            .into_values()
            .collect()
    }

    #[test]
    fn tuples_count_as_arguments() {
        assert_eq!(packed("fn f(a: (u8, u8, u8)) {}"), [3]);
        assert_eq!(
            packed("impl X { fn f(&self, (a, b): (u8, &(u8, u8)), c: u8, d: u8, e: u8) {} }"),
            [6]
        );
        assert_eq!(packed("fn f((a, b): (u8, u8)) {}"), [2]);
        assert_eq!(packed("fn f([a, b]: [u8; 2], c: u8) {}"), [3]);
        assert_eq!(packed("trait T { fn f(a: &(u8, u8, u8)); }"), [3]);
        assert_eq!(packed("fn f(a: (u8, u8), b: u8, c: u8, d: u8) {}"), [0; 0]);
        assert_eq!(packed("fn f(a: &[(u8, u8, u8)], b: ()) {}"), [0; 0]);
        assert_eq!(
            packed("#[cfg(test)] mod tests { fn f(a: (u8, u8, u8)) {} }"),
            [0; 0]
        );
    }

    #[test]
    fn a_type_is_followed_through_the_files_of_its_crate() {
        let block = |count: usize| {
            let methods: String = (0..count)
                .map(|index| format!("fn f{index}(&self) {{}} "))
                .collect();
            format!("impl T {{ {methods} }}")
        };
        let (most, one) = (block(METHODS), block(1));
        let home = format!("struct T; {most}");
        let alone = [
            ("crates/x/src/t.rs", home.as_str()),
            ("crates/y/src/t.rs", one.as_str()),
        ];
        assert_eq!(methods(&parse(&alone)), BTreeMap::new());
        let parts = [
            ("crates/x/src/t.rs", home.as_str()),
            ("crates/x/src/u.rs", one.as_str()),
            (
                "crates/x/src/v.rs",
                "impl Clone for T { fn clone(&self) -> T { T } }",
            ),
        ];
        let key = "crates/x/src/t.rs T".to_owned();
        assert_eq!(
            methods(&parse(&parts)),
            BTreeMap::from([(key.clone(), METHODS + 1)])
        );
        assert_eq!(spread(&parse(&parts)), BTreeMap::from([(key, 3)]));
        assert_eq!(spread(&parse(&parts[..2])), BTreeMap::new());
    }

    #[test]
    fn errors_that_are_text_are_found_where_others_call() {
        let count = |path: &str, text: &str| {
            let counts = text_errors(&parse(&[(path, text)]));
            counts.into_values().sum::<usize>()
        };
        let text = "pub fn f() -> Result<u8, String> {} \
            impl X { pub(crate) fn g() -> std::result::Result<(), String> {} }";
        assert_eq!(count("tools/x/src/a.rs", text), 2);
        assert_eq!(count("tools/weft/src/a.rs", text), 0);
        assert_eq!(count("tools/x/src/main.rs", text), 0);
        let others = "fn f() -> Result<u8, String> {} pub fn g() -> Result<String, E> {} \
            pub fn h() -> Option<String> {}";
        assert_eq!(count("tools/x/src/a.rs", others), 0);
    }
}
