// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lengths and counts: what fits on a screen and in a head. Reads the parsed files of
//! [`crate::tree`].

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::Finding;
use crate::tree::{RustFile, file_is_excused, item_is_excused};

/// Chosen: above this a file has usually become two.
pub const FILE_LINES: usize = 500;
/// Chosen: a function fits on one screen.
pub const FUNCTION_LINES: usize = 70;
/// Chosen: more arguments want a struct. The receiver `self` is not counted.
pub const ARGUMENTS: usize = 5;
/// Chosen: more fields want sub-structs with a meaning of their own.
pub const STRUCT_FIELDS: usize = 15;
/// Chosen: a larger trait is several.
pub const TRAIT_METHODS: usize = 8;

/// All findings about sizes in `files`.
pub fn check(files: &[RustFile]) -> Vec<Finding> {
    files.iter().flat_map(check_file).collect()
}

fn check_file(file: &RustFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = file.text.lines().count();
    if lines > FILE_LINES && !file_is_excused(&file.text, "file-length") {
        let text = format!(
            "{lines} lines; the limit is {FILE_LINES}. Split it, or state why not (file-length)."
        );
        findings.push(Finding::new(&file.path, text));
    }
    let mut visitor = Sizes { file, findings };
    visitor.visit_file(&file.syntax);
    visitor.findings
}

struct Sizes<'a> {
    file: &'a RustFile,
    findings: Vec<Finding>,
}

impl Sizes<'_> {
    fn limit(&mut self, item: &Item, rule: &str, count: usize, limit: usize) {
        if count > limit && !item_is_excused(&self.file.text, item.line, rule) {
            let text = format!(
                "`{}` has {rule} {count}; the limit is {limit}. Split it, or state why not \
                 (structure: allow {rule}).",
                item.name
            );
            self.findings
                .push(Finding::at(&self.file.path, item.line, text));
        }
    }

    fn function(&mut self, signature: &syn::Signature, last_line: usize, first_line: usize) {
        let item = Item {
            name: signature.ident.to_string(),
            line: first_line,
        };
        let from = signature.span().start().line;
        self.limit(
            &item,
            "function-length",
            last_line + 1 - from,
            FUNCTION_LINES,
        );
        let typed = signature
            .inputs
            .iter()
            .filter(|input| matches!(input, syn::FnArg::Typed(_)));
        self.limit(&item, "arguments", typed.count(), ARGUMENTS);
    }
}

/// What a finding names: the item and the line it starts on, below its comments and attributes.
struct Item {
    name: String,
    line: usize,
}

impl<'ast> Visit<'ast> for Sizes<'_> {
    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        let first = first_line(&node.vis, &node.sig);
        self.function(&node.sig, node.block.span().end().line, first);
        visit::visit_item_fn(self, node);
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        let first = first_line(&node.vis, &node.sig);
        self.function(&node.sig, node.block.span().end().line, first);
        visit::visit_impl_item_fn(self, node);
    }

    fn visit_trait_item_fn(&mut self, node: &'ast syn::TraitItemFn) {
        let end = node.span().end().line;
        self.function(&node.sig, end, node.sig.span().start().line);
        visit::visit_trait_item_fn(self, node);
    }

    fn visit_item_struct(&mut self, node: &'ast syn::ItemStruct) {
        let item = Item {
            name: node.ident.to_string(),
            line: first_line(&node.vis, &node.struct_token),
        };
        self.limit(&item, "struct-fields", node.fields.len(), STRUCT_FIELDS);
        visit::visit_item_struct(self, node);
    }

    fn visit_item_trait(&mut self, node: &'ast syn::ItemTrait) {
        let item = Item {
            name: node.ident.to_string(),
            line: first_line(&node.vis, &node.trait_token),
        };
        let methods = node
            .items
            .iter()
            .filter(|item| matches!(item, syn::TraitItem::Fn(_)))
            .count();
        self.limit(&item, "trait-methods", methods, TRAIT_METHODS);
        visit::visit_item_trait(self, node);
    }
}

/// The line of the visibility where there is one, else of the keyword.
fn first_line(visibility: &syn::Visibility, keyword: &impl Spanned) -> usize {
    match visibility {
        syn::Visibility::Inherited => keyword.span().start().line,
        written => written.span().start().line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<Finding> {
        check(&[RustFile::parse("crates/x/src/y.rs", text).unwrap()])
    }

    fn function_of_lines(lines: usize) -> String {
        format!(
            "impl X {{\n    pub fn f(&self) {{\n{}    }}\n}}\n",
            "        g();\n".repeat(lines - 2)
        )
    }

    #[test]
    fn function_over_the_limit_is_found_and_at_the_limit_is_not() {
        assert_eq!(findings(&function_of_lines(FUNCTION_LINES)), []);
        let found = findings(&function_of_lines(FUNCTION_LINES + 1));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "crates/x/src/y.rs:2");
    }

    #[test]
    fn file_over_the_limit_is_found_unless_excused() {
        let long = "// line\n".repeat(FILE_LINES + 1);
        assert_eq!(findings(&long).len(), 1);
        let excuse = "// structure: allow file-length because it is one table\n";
        assert_eq!(findings(&format!("{excuse}{long}")), []);
    }

    #[test]
    fn self_is_not_counted_as_an_argument() {
        let five = "impl X { fn f(&self, a: u8, b: u8, c: u8, d: u8, e: u8) {} }";
        assert_eq!(findings(five), []);
        assert_eq!(
            findings("fn f(a: u8, b: u8, c: u8, d: u8, e: u8, g: u8) {}").len(),
            1
        );
    }

    #[test]
    fn wide_struct_and_wide_trait_are_found() {
        let fields: String = (0..=STRUCT_FIELDS)
            .map(|index| format!("f{index}: u8, "))
            .collect();
        assert_eq!(findings(&format!("pub struct S {{ {fields} }}")).len(), 1);
        let methods: String = (0..=TRAIT_METHODS)
            .map(|index| format!("fn f{index}(); "))
            .collect();
        assert_eq!(findings(&format!("trait T {{ {methods} }}")).len(), 1);
    }

    #[test]
    fn excuse_stands_above_documentation_and_attributes() {
        let text = "// structure: allow arguments because C has six\n/// Docs.\n#[inline]\npub fn \
            f(a: u8, b: u8, c: u8, d: u8, e: u8, g: u8) {}";
        assert_eq!(findings(text), []);
    }
}
