// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The launcher's complete command line and environment: composed once, then either run or printed
//! for copy and paste.
//!
//! Called by `lib.rs`; takes the settings that `transport.rs` gives and adds what holds for every
//! transport.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;

use crate::discover::Installation;
use crate::environment::Environment;
use crate::family::Family;
use crate::fault::Fault;
use crate::rank_environment::RankProgram;
use crate::several_hosts;
use crate::shell::quote;
use crate::transport::Settings;

/// The launcher with everything it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The launcher.
    pub mpiexec: PathBuf,
    /// Its arguments, then the program and the program's arguments.
    pub arguments: Vec<OsString>,
    /// What is changed in the inherited environment.
    pub environment: Environment,
}

/// What the user gave for the program.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The program and its surroundings.
    pub rank: RankProgram<'a>,
    /// Its arguments.
    pub arguments: &'a [OsString],
    /// Number of ranks.
    pub ranks: u32,
    /// For a job on several hosts: variables that will be set later and must reach the ranks.
    pub elsewhere: Option<&'a [&'a str]>,
}

impl Launch {
    /// Puts the command together.
    ///
    /// # Errors
    /// As [`RankProgram::complete`].
    pub fn compose(
        mpi: &Installation,
        settings: Settings,
        request: &Request<'_>,
    ) -> Result<Self, Fault> {
        let Settings {
            arguments,
            before_program,
            launcher: mut environment,
            mut ranks,
        } = settings;
        request.rank.complete(&mut ranks, mpi)?;
        environment.add(ranks);
        let mut launch = Self {
            mpiexec: mpi.mpiexec.clone(),
            arguments: Vec::new(),
            environment,
        };
        launch
            .arguments
            .extend(["-n".into(), OsString::from(request.ranks.to_string())]);
        launch.arguments.extend(arguments);
        if let (Some(later), Family::OpenMpi) = (request.elsewhere, mpi.family) {
            launch.export(later);
        }
        launch.arguments.extend(before_program);
        launch
            .arguments
            .push(request.rank.program.path.clone().into_os_string());
        launch.arguments.extend(request.arguments.iter().cloned());
        Ok(launch)
    }

    /// Has the launcher started by these words, which stand before it.
    pub fn start_by(&mut self, words: Vec<OsString>) {
        let mut words = words.into_iter();
        if let Some(first) = words.next() {
            let launcher = std::mem::replace(&mut self.mpiexec, first.into());
            self.arguments.splice(..0, words.chain([launcher.into()]));
        }
    }

    /// Open MPI passes on to other hosts what it is told to, by name: the value goes through its
    /// own connection.
    fn export(&mut self, later: &[&str]) {
        let removed: Vec<&str> = self.environment.removed().collect();
        let inherited = std::env::vars_os()
            .filter_map(|(name, _)| name.into_string().ok())
            .filter(|name| !removed.contains(&name.as_str()));
        for name in several_hosts::exported(&self.environment.set, inherited, later) {
            self.arguments.extend(["-x".into(), name.into()]);
        }
    }

    /// The command ready to be started, with the standard streams inherited.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.mpiexec);
        self.environment.apply(&mut command);
        command.args(&self.arguments);
        command
    }

    /// The command as a line for a POSIX shell. `is_set` tells which of the removed variables need
    /// mentioning.
    #[must_use]
    pub fn shell_line(&self, is_set: impl Fn(&str) -> bool) -> OsString {
        let mut words: Vec<OsString> = vec!["env".into()];
        for name in self.environment.removed().filter(|name| is_set(name)) {
            words.extend(["-u".into(), quote(OsStr::new(name))]);
        }
        for (name, value) in &self.environment.set {
            let mut word = OsString::from(name);
            word.push("=");
            word.push(quote(value));
            words.push(word);
        }
        words.push(quote(self.mpiexec.as_os_str()));
        words.extend(self.arguments.iter().map(|argument| quote(argument)));
        words.join(OsStr::new(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use crate::linkage;
    use crate::loader::Loader;
    use crate::program::{Binding, Program};
    use crate::rank_arguments::Variable;

    fn open_mpi(libmpi: Option<&str>) -> Installation {
        Installation {
            mpiexec: "/o p/bin/mpiexec".into(),
            libmpi: libmpi.map(PathBuf::from),
            ..Installation::nowhere(Family::OpenMpi, 5)
        }
    }

    fn compose(
        mpi: &Installation,
        settings: Settings,
        binding: Binding,
        variables: &[Variable],
    ) -> Result<Launch, Fault> {
        let program = Program {
            path: "./my code".into(),
            binding,
        };
        let arguments = ["it's".into(), "".into(), "$HOME".into()];
        Launch::compose(
            mpi,
            settings,
            &Request {
                rank: RankProgram {
                    program: &program,
                    variables,
                    library_path: None,
                },
                arguments: &arguments,
                ranks: 3,
                elsewhere: None,
            },
        )
    }

    #[test]
    fn the_printed_line_names_removed_variables_only_where_they_are_set() {
        let mut settings = Settings::default();
        settings.set("A", "1 2");
        settings.remove(&["GONE", "ABSENT", "A"]);
        let launch = compose(
            &open_mpi(Some("/o/libmpi.so.40")),
            settings,
            Binding::AtRunTime,
            &[],
        )
        .unwrap();
        let line = launch
            .shell_line(|name| name == "GONE")
            .into_string()
            .unwrap();
        assert_eq!(
            line,
            "env -u GONE A='1 2' WEFT_MPI_LIBRARY=/o/libmpi.so.40 '/o p/bin/mpiexec' -n 3 './my \
             code' 'it'\\''s' '' '$HOME'"
        );
    }

    #[test]
    fn the_users_variable_wins_and_is_set_once() {
        let mut settings = Settings::default();
        settings.set("FI_PROVIDER", "weft");
        let own = [Variable {
            name: "FI_PROVIDER".into(),
            value: "tcp".into(),
        }];
        let launch = compose(&open_mpi(Some("/l")), settings, Binding::AtRunTime, &own).unwrap();
        let values: Vec<_> = launch
            .environment
            .set
            .iter()
            .filter(|(name, _)| name == "FI_PROVIDER")
            .collect();
        assert_eq!(values, [&("FI_PROVIDER".to_owned(), OsString::from("tcp"))]);
    }

    #[test]
    fn python_is_told_its_libmpi() {
        let launch = compose(
            &open_mpi(Some("/l/libmpi.so.40")),
            Settings::default(),
            Binding::Python {
                prefix: "/v".into(),
            },
            &[],
        )
        .unwrap();
        assert!(
            launch
                .environment
                .set
                .contains(&("MPI4PY_LIBMPI".into(), "/l/libmpi.so.40".into()))
        );
    }

    #[test]
    fn a_program_that_binds_at_run_time_needs_a_known_library() {
        let fault = compose(
            &open_mpi(None),
            Settings::default(),
            Binding::AtRunTime,
            &[],
        )
        .unwrap_err();
        assert!(matches!(fault, Fault::MpiMissing(_)));
        assert!(
            compose(
                &open_mpi(None),
                Settings::default(),
                Binding::None(String::new()),
                &[]
            )
            .is_ok()
        );
    }

    /// A program linked to the libmpi in `a`, and an MPI whose libmpi of the same name is in `b`.
    fn linked_elsewhere(folder: &Path, dtags: &str) -> (Program, Installation) {
        let cc = |arguments: &[&str]| {
            let status = Command::new("cc")
                .current_dir(folder)
                .args(arguments)
                .status()
                .unwrap();
            assert!(status.success());
        };
        std::fs::write(folder.join("mpi.c"), "int MPI_Init(void){return 0;}").unwrap();
        std::fs::write(
            folder.join("main.c"),
            "int MPI_Init(void); int main(void){return MPI_Init();}",
        )
        .unwrap();
        for name in ["a", "b"] {
            std::fs::create_dir(folder.join(name)).unwrap();
            let output = format!("{name}/libmpi.so.999");
            cc(&[
                "-shared",
                "-fPIC",
                "mpi.c",
                "-o",
                &output,
                "-Wl,-soname,libmpi.so.999",
            ]);
        }
        let search = format!("-Wl,{dtags},-rpath,{}", folder.join("a").display());
        cc(&["main.c", "-o", "program", "a/libmpi.so.999", &search]);
        let path = folder.join("program");
        let need = linkage::find_mpi(&path, &Loader::default())
            .unwrap()
            .unwrap();
        let mpi = open_mpi(folder.join("b/libmpi.so.999").to_str());
        (
            Program {
                path,
                binding: Binding::Linked(need),
            },
            mpi,
        )
    }

    #[test]
    fn a_program_linked_to_another_build_is_led_to_this_one_or_refused_where_its_rpath_wins() {
        let compose = |dtags: &str, folder: &Path| {
            let (program, mpi) = linked_elsewhere(folder, dtags);
            let inherited = OsString::from("/inherited");
            let request = Request {
                rank: RankProgram {
                    program: &program,
                    variables: &[],
                    library_path: Some(&inherited),
                },
                arguments: &[],
                ranks: 1,
                elsewhere: None,
            };
            Launch::compose(&mpi, Settings::default(), &request)
        };
        let folder = tempfile::tempdir().unwrap();
        let launch = compose("--enable-new-dtags", folder.path()).unwrap();
        let expected = OsString::from(format!("{}:/inherited", folder.path().join("b").display()));
        assert!(
            launch
                .environment
                .set
                .contains(&("LD_LIBRARY_PATH".into(), expected)),
            "{launch:?}"
        );
        let folder = tempfile::tempdir().unwrap();
        let fault = compose("--disable-new-dtags", folder.path()).unwrap_err();
        assert!(
            matches!(fault, Fault::Mismatch(_)) && fault.to_string().contains("RPATH"),
            "{fault}"
        );
    }
}
