// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every page of a folder of documents is listed in that folder's README.md: a page that no list
//! names is found by nobody.

use std::collections::BTreeSet;

use crate::Finding;
use crate::link::link_targets;
use crate::tree::TextFile;

/// Folders whose README.md lists all their pages.
const FOLDERS: [&str; 2] = ["docs/adr/", "docs/lab/"];
/// The page that lists the others.
const LIST: &str = "README.md";

/// All pages among `files` that their list does not name.
pub fn check(files: &[TextFile]) -> Vec<Finding> {
    let folders = FOLDERS.iter();
    folders
        .flat_map(|folder| check_folder(folder, files))
        .collect()
}

fn check_folder(folder: &str, files: &[TextFile]) -> Vec<Finding> {
    let pages = files.iter().filter_map(|file| {
        let name = file.path.strip_prefix(folder)?;
        name.ends_with(".md").then_some((name, file))
    });
    let (lists, pages): (Vec<_>, Vec<_>) = pages.partition(|(name, _)| *name == LIST);
    let listed: BTreeSet<&str> = lists
        .iter()
        .flat_map(|(_, list)| list.text.lines().flat_map(link_targets))
        .collect();
    let missing = pages.iter().filter(|(name, _)| !listed.contains(name));
    let finding = |(_, page): &(&str, &TextFile)| {
        Finding::new(&page.path, format!("{folder}{LIST} does not list it."))
    };
    missing.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_its_list_leaves_out_is_found() {
        let file = |path: &str, text: &str| TextFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let list = "- [one](1.md)\n- [two, over\n  two lines](2.md)";
        let found = check(&[
            file("docs/lab/README.md", list),
            file("docs/lab/1.md", ""),
            file("docs/lab/2.md", ""),
            file("docs/lab/3.md", ""),
            file("docs/elsewhere.md", ""),
            file("docs/adr/1.md", "a folder without a list"),
        ]);
        let places: Vec<&str> = found.iter().map(|one| one.place.as_str()).collect();
        assert_eq!(places, ["docs/adr/1.md", "docs/lab/3.md"]);
    }
}
