// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A network device whose packets this process reads and writes (Linux,
//! Documentation/networking/tuntap.rst).
//!
//! Called by the network, in the namespace that the device shall live in.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

/// `TUNSETIFF` of linux/if_tun.h.
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;

/// Makes a device of this name, of IP packets without a header before them. Reads and writes do not
/// block.
///
/// # Errors
/// Those of open(2) on /dev/net/tun, and of ioctl(2): without CAP_NET_ADMIN in the namespace,
/// EPERM.
pub fn open(name: &str) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    // SAFETY: a request is plain data, for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(15)) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the descriptor is open, and the request is a structure of the size that the call
    // reads.
    let code = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, &raw mut request) };
    if code < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(file)
}
