// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes to the environment that a process inherits: variables to set, variables to take away.
//!
//! Made by `transport.rs` in two parts, for the launcher and for the ranks; `weft run` hands both
//! to the launcher, `weft exec` and `weft env` use that of the ranks.

use std::ffi::OsString;
use std::process::Command;

/// The changes. What is set is not taken away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Variables to set, in order; each name once.
    pub set: Vec<(String, OsString)>,
    /// Variables to take away, because they would contradict what is set.
    pub remove: Vec<String>,
}

impl Environment {
    /// Sets a variable, in place of an earlier value.
    pub fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.set.retain(|(set, _)| set != name);
        self.set.push((name.to_owned(), value.into()));
    }

    /// Takes variables away, unless they are set.
    pub fn remove(&mut self, names: &[&str]) {
        self.remove
            .extend(names.iter().map(|&name| name.to_owned()));
    }

    /// The value that is set for `name`, if any.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&OsString> {
        let found = self.set.iter().find(|(set, _)| set == name);
        found.map(|(_, value)| value)
    }

    /// Adds other changes, which win.
    pub fn add(&mut self, later: Self) {
        for (name, value) in later.set {
            self.set(&name, value);
        }
        self.remove.extend(later.remove);
    }

    /// The variables that are taken away.
    pub fn removed(&self) -> impl Iterator<Item = &str> {
        let names = self.remove.iter().map(String::as_str);
        names.filter(|&name| self.value(name).is_none())
    }

    /// Makes the changes to what a process will inherit.
    pub fn apply(&self, command: &mut Command) {
        for name in self.removed() {
            command.env_remove(name);
        }
        command.envs(self.set.iter().map(|(name, value)| (name, value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_later_wins_and_what_is_set_is_not_taken_away() {
        let mut first = Environment::default();
        first.set("A", "1");
        first.set("B", "1");
        first.remove(&["C", "D"]);
        let mut later = Environment::default();
        later.set("A", "2");
        later.set("C", "2");
        later.remove(&["B", "E"]);
        first.add(later);
        assert_eq!(first.value("A").unwrap(), "2");
        assert_eq!(first.set.len(), 3);
        assert_eq!(first.removed().collect::<Vec<_>>(), ["D", "E"]);
        let mut command = Command::new("true");
        first.apply(&mut command);
        let told: Vec<_> = command.get_envs().map(|(name, _)| name).collect();
        assert_eq!(told, ["A", "B", "C", "D", "E"]);
    }
}
