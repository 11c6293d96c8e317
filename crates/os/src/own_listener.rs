// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Listening and connecting under a name that any user of the host may take first: names of
//! abstract sockets are nobody's (unix(7)). Whoever finds its name taken listens beside it, under
//! the name, a slash and a random number; whoever connects asks the kernel whose listener it has
//! found, and looks for one of its own user beside. Used by shm at first contact, and by the tools.

use std::io;

use crate::local_socket::{Connection, Credentials, Listener};
use crate::proc_text;
use crate::process;

/// Most listeners beside a name that are tried. Chosen: some ten milliseconds.
const TRIED_COUNT: usize = 4096;

/// Listens under `name`, or beside it if it is taken. Setup.
///
/// # Errors
/// The errno of socket(2), bind(2) or getrandom(2).
pub fn bind(name: &str) -> io::Result<Listener> {
    match Listener::bind(name) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            Listener::bind(&format!("{name}/{:016x}", process::random_u64()?))
        }
        bound => bound,
    }
}

/// Connects to the listener of our own user that is called `name`, or listens beside it; answers
/// whose process it is, too. Slow path; reads /proc only if the name itself is not our user's.
///
/// # Errors
/// `ConnectionRefused` if there is none, `PermissionDenied` if only other users listen there,
/// `WouldBlock` if too many wait for the one that is called so.
pub fn connect(name: &str) -> io::Result<(Connection, Credentials)> {
    let first = open_if_own(name);
    let Err(error) = first else {
        return first;
    };
    let listed = proc_text::read("/proc/net/unix").unwrap_or_default();
    let beside = beside(&listed, name).take(TRIED_COUNT);
    let mut found = beside.filter_map(|other| open_if_own(other).ok());
    found.next().ok_or(error)
}

fn open_if_own(name: &str) -> io::Result<(Connection, Credentials)> {
    let connection = Connection::open(name)?;
    let who = connection.credentials()?;
    if who.uid != process::own_uid() || (who.pid != 0 && crate::process_id::has_ended(who.pid)) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok((connection, who))
}

/// The names beside a name, in the text of /proc/net/unix (proc_net(5)).
fn beside<'a>(listed: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let path = |line: &'a str| line.split_ascii_whitespace().nth(7)?.strip_prefix('@');
    let is_beside = move |path: &&str| {
        let rest = path
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('/'));
        rest.is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    };
    listed.lines().filter_map(path).filter(is_beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beside_another_are_told_from_longer_ones() {
        let listed = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 1 @weft/a:1\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 2 @weft/a:1/0a1\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 3 @weft/a:1/\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 4 @weft/a:1/bell\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 5 @weft/a:11/0a1\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 6 /weft/a:1/0a1\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 7\n";
        let found: Vec<&str> = beside(listed, "weft/a:1").collect();
        assert_eq!(found, ["weft/a:1/0a1"]);
    }

    #[test]
    fn a_listener_whose_name_is_taken_is_found_once_the_name_is_free_or_anothers() {
        let name = format!("weft-test-beside-{}", std::process::id());
        assert_eq!(
            connect(&name).expect_err("none").kind(),
            io::ErrorKind::ConnectionRefused
        );
        let taken = Listener::bind(&name).expect("bind");
        let beside = bind(&name).expect("beside");
        let connected = connect(&name).expect("one");
        assert_eq!(connected.1.pid, std::process::id());
        assert!(taken.accept().is_some() && beside.accept().is_none());
        drop(taken);
        let connected = connect(&name).expect("the other one");
        assert!(beside.accept().is_some());
        drop(connected);
    }
}
