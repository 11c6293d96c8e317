// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether this host has Amazon's Elastic Fabric Adapter, and whether programs may use it.
//!
//! Called by `lib.rs`. Weft sends over UDP and needs none; a job between such hosts has another
//! provider to compare with. Sources: the kernel's drivers/infiniband/hw/efa; sysfs(5) below
//! class/infiniband and class/infiniband_verbs; libfabric's fi_efa(7).

use std::fs::File;
use std::io;
use std::path::Path;

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use crate::check::{Check, Status};
use crate::tree::Tree;

const NAME: &str = "EFA";
const WHY: &str = "Weft sends over UDP and does not use it; the provider efa of libfabric does, \
                   and is worth a comparison between such hosts";

/// The check.
#[must_use]
pub fn check(tree: &Tree) -> Check {
    let open = |path: &Path| {
        let mut options = File::options();
        options.read(true).write(true).open(path).map(drop)
    };
    let may_lock = getrlimit(Resource::RLIMIT_MEMLOCK).map_or(0, |(soft, _)| soft);
    judge(&devices(tree), open, may_lock == RLIM_INFINITY)
}

/// The adapters, each with the device of its verbs.
fn devices(tree: &Tree) -> Vec<(String, Option<String>)> {
    let is_efa = |name: &String| {
        let driver = tree.field(
            format!("/sys/class/infiniband/{name}/device/uevent"),
            "DRIVER=",
        );
        driver.is_some_and(|driver| driver == "efa")
    };
    let verbs = tree.names("/sys/class/infiniband_verbs");
    let device_of = |name: &String| {
        let mut all = verbs.iter();
        let is_its = |one: &&String| {
            tree.text(format!("/sys/class/infiniband_verbs/{one}/ibdev"))
                .as_ref()
                == Some(name)
        };
        all.find(is_its).cloned()
    };
    let all = tree.names("/sys/class/infiniband").into_iter();
    all.filter(is_efa)
        .map(|name| (name.clone(), device_of(&name)))
        .collect()
}

fn judge(
    devices: &[(String, Option<String>)],
    open: impl Fn(&Path) -> io::Result<()>,
    may_lock_all: bool,
) -> Check {
    let Some((first, verbs)) = devices.first() else {
        return Check::ok(NAME, "there is none here, and Weft needs none", WHY);
    };
    let found = match devices.len() {
        1 => first.clone(),
        count => format!("{count} adapters, the first {first}"),
    };
    let Some(verbs) = verbs else {
        let value = format!("{found}, without a device of verbs");
        return Check::ok(NAME, value, WHY).but(Status::Warn, "modprobe ib_uverbs");
    };
    let path = Path::new("/dev/infiniband").join(verbs);
    if let Err(error) = open(&path) {
        let value = format!("{found}; {} cannot be opened: {error}", path.display());
        let fix = format!("a container needs it: --device {}", path.display());
        return Check::ok(NAME, value, WHY).but(Status::Warn, fix);
    }
    let value = format!("{found}; {} was opened", path.display());
    Check::ok(NAME, value, WHY)
        .but_if(
            !may_lock_all,
            Status::Warn,
            "ulimit -l unlimited (the provider efa locks the memory that it sends)",
        )
        .limited_by("`ulimit -l` is not unlimited")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> (tempfile::TempDir, Tree) {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("sys/class/infiniband/rdmap0/device/uevent", "DRIVER=efa\n");
        write(
            "sys/class/infiniband/mlx5_0/device/uevent",
            "DRIVER=mlx5_core\n",
        );
        write("sys/class/infiniband_verbs/uverbs1/ibdev", "rdmap0\n");
        write("sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n");
        let tree = Tree::below(folder.path());
        (folder, tree)
    }

    #[test]
    fn only_adapters_of_that_driver_are_found() {
        let (_folder, tree) = machine();
        let found = devices(&tree);
        assert_eq!(found, [("rdmap0".to_owned(), Some("uverbs1".to_owned()))]);
        assert!(devices(&Tree::below("/nowhere")).is_empty());
    }

    #[test]
    fn an_adapter_that_cannot_be_used_is_a_warning_and_none_is_no_fault() {
        let found = [("rdmap0".to_owned(), Some("uverbs1".to_owned()))];
        assert_eq!(judge(&[], |_| Ok(()), false).status, Status::Ok);
        let check = judge(&found, |_| Ok(()), true);
        assert_eq!(check.status, Status::Ok);
        assert_eq!(check.value, "rdmap0; /dev/infiniband/uverbs1 was opened");
        let check = judge(&found, |_| Ok(()), false);
        check.assert_wrong(Status::Warn, "ulimit -l unlimited");
        let denied = |_: &Path| Err(io::Error::from(io::ErrorKind::NotFound));
        let check = judge(&found, denied, true);
        check.assert_wrong(Status::Warn, "--device /dev/infiniband/uverbs1");
        let check = judge(&[("rdmap0".to_owned(), None)], |_| Ok(()), true);
        check.assert_wrong(Status::Warn, "modprobe ib_uverbs");
    }
}
