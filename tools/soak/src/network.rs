// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hosts of a soak: network namespaces whose only way out is a device of this process, and a relay
//! between the devices that
//! loses, doubles, delays, changes, replays and swallows packets.
//!
//! Called by the job. A host is a thread that lives in a namespace of its own: what it starts lives
//! there too. Needs root
//! of a user namespace at least, `ip` and /dev/net/tun; `packet` reads headers, `relay` carries.

mod packet;
mod relay;

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use nix::sched::{CloneFlags, unshare};

pub use relay::{Counts, Relay, Weather};

type Task = Box<dyn FnOnce() + Send>;

/// One host.
pub struct Host {
    tasks: Option<Sender<Task>>,
    thread: Option<JoinHandle<()>>,
    /// Its address.
    pub address: Ipv4Addr,
}

/// The address of the host of this number; below 200.
fn address_of(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 99, 0, number + 1)
}

impl Host {
    /// Makes a host with a device of this MTU, and returns the device's packets. Without a device,
    /// a host without a
    /// namespace: everything runs on this machine's loopback.
    ///
    /// # Errors
    /// Why no namespace, device or address can be had here.
    pub fn start(number: u8, mtu: u32) -> io::Result<(Self, File)> {
        let (sender, receiver) = channel();
        let made = spawn(move || set_up(number, mtu), sender)?;
        let device = receiver
            .recv()
            .map_err(|_| io::Error::other("the thread of a host ended"))??;
        let mut host = made;
        host.address = address_of(number);
        Ok((host, device))
    }

    /// A host without a namespace of its own.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn loopback() -> io::Result<Self> {
        let (sender, _) = channel();
        let mut host = spawn(|| Ok(()), sender)?;
        host.address = Ipv4Addr::LOCALHOST;
        Ok(host)
    }

    /// Runs something on the host, and waits for it.
    ///
    /// # Errors
    /// The host's thread has ended.
    pub fn run<T: Send + 'static>(
        &self,
        task: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let ended = || io::Error::other("the thread of a host ended");
        let (sender, receiver) = channel();
        let task: Task = Box::new(move || {
            let _ = sender.send(task());
        });
        let tasks = self.tasks.as_ref().ok_or_else(ended)?;
        tasks.send(task).map_err(|_| ended())?;
        receiver.recv().map_err(|_| ended())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.tasks = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts the thread of a host; what `first` answers goes to `told`.
fn spawn<T: Send + 'static>(
    first: impl FnOnce() -> io::Result<T> + Send + 'static,
    told: Sender<io::Result<T>>,
) -> io::Result<Host> {
    let (tasks, receiver) = channel::<Task>();
    let thread = std::thread::Builder::new()
        .name("host".into())
        .spawn(move || {
            let made = first();
            let is_made = made.is_ok();
            let _ = told.send(made);
            if is_made {
                for task in receiver {
                    task();
                }
            }
        })?;
    Ok(Host {
        tasks: Some(tasks),
        thread: Some(thread),
        address: Ipv4Addr::UNSPECIFIED,
    })
}

/// Gives the calling thread a network of its own.
fn set_up(number: u8, mtu: u32) -> io::Result<File> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    let device = crate::system::tun::open("weft0")?;
    let address = format!("{}/16", address_of(number));
    ip(&["link", "set", "lo", "up"])?;
    ip(&["addr", "add", &address, "dev", "weft0"])?;
    let mtu = mtu.to_string();
    // The queue must hold a burst of all ranks: what overflows is lost, which is the relay's task.
    ip(&[
        "link",
        "set",
        "weft0",
        "mtu",
        &mtu,
        "txqueuelen",
        "20000",
        "up",
    ])?;
    Ok(device)
}

fn ip(words: &[&str]) -> io::Result<()> {
    let output = Command::new("ip").args(words).output().map_err(|error| {
        io::Error::other(format!("ip cannot be started: {error} (Debian: iproute2)"))
    })?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(io::Error::other(format!("ip {}: {why}", words.join(" "))))
}
