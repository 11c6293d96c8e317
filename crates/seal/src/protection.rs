// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What every datagram of an endpoint passes on its way out and in (srd-protocol 14). Called by the
//! driver of the sockets.

use std::fmt;

use weft_wire::header::HEADER_BYTES;

use crate::job_key::{JobKey, NoRandom, random_incarnation};
pub use crate::sealing::SEAL_BYTES;
use crate::sealing::Sealing;
use crate::tagging::{TAG_RANGE, Tagging};

/// Where the flags lie, and the one that says that a datagram is encrypted (srd-protocol 2).
const FLAGS: usize = 1;
const SEALED: u8 = 16;
/// Where the source incarnation lies (srd-protocol 2).
const SOURCE: std::ops::Range<usize> = 8..16;

enum Mode {
    Open,
    Tagged(Box<Tagging>),
    Sealed(Box<Sealing>),
}

/// The protection of one endpoint. Not `Clone`: two endpoints with one incarnation would encrypt
/// under the same nonces.
pub struct PacketProtection {
    incarnation: u64,
    mode: Mode,
    rejections: Rejections,
}

impl fmt::Debug for PacketProtection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.mode {
            Mode::Open => "open",
            Mode::Tagged(_) => "tagged",
            Mode::Sealed(_) => "sealed",
        };
        let mut shown = f.debug_struct("PacketProtection");
        shown.field("mode", &mode);
        shown.field("rejections", &self.rejections).finish()
    }
}

/// Why a datagram was turned away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rejected {
    /// Shorter than a header, or than a header and its seal.
    Short,
    /// It is open, tagged or sealed, and ours are not alike: the sender's settings differ from
    /// ours.
    Mode,
    /// Not made under our job's key, or changed on its way.
    Forged,
}

/// How many datagrams were turned away, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rejections {
    /// See [`Rejected::Short`].
    pub short_count: u64,
    /// See [`Rejected::Mode`].
    pub mode_count: u64,
    /// See [`Rejected::Forged`].
    pub forged_count: u64,
}

impl Rejections {
    fn count(&mut self, why: Rejected) {
        let count = match why {
            Rejected::Short => &mut self.short_count,
            Rejected::Mode => &mut self.mode_count,
            Rejected::Forged => &mut self.forged_count,
        };
        *count += 1;
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.short_count + self.mode_count + self.forged_count
    }
}

impl PacketProtection {
    /// For a network on which everybody is trusted. Setup.
    ///
    /// # Errors
    /// When there are no random bytes for the incarnation; so with the other two.
    pub fn open_network() -> Result<Self, NoRandom> {
        Self::with(|_| Mode::Open)
    }

    /// Tags every datagram. Setup.
    ///
    /// # Errors
    /// See [`PacketProtection::open_network`].
    pub fn tagged(key: &JobKey) -> Result<Self, NoRandom> {
        Self::with(|_| Mode::Tagged(Box::new(Tagging::new(&key.root()))))
    }

    /// Encrypts every datagram. Setup.
    ///
    /// # Errors
    /// See [`PacketProtection::open_network`].
    pub fn sealed(key: &JobKey) -> Result<Self, NoRandom> {
        Self::with(|own| Mode::Sealed(Box::new(Sealing::new(key.root(), own))))
    }

    fn with(mode: impl FnOnce(u64) -> Mode) -> Result<Self, NoRandom> {
        let incarnation = random_incarnation()?;
        Ok(Self {
            incarnation,
            mode: mode(incarnation),
            rejections: Rejections::default(),
        })
    }

    /// A protection of a known incarnation: two with the same one must never live under one key.
    #[cfg(test)]
    pub(crate) fn of(mut self, incarnation: u64, key: &JobKey) -> Self {
        self.incarnation = incarnation;
        if matches!(self.mode, Mode::Sealed(_)) {
            self.mode = Mode::Sealed(Box::new(Sealing::new(key.root(), incarnation)));
        }
        self
    }

    #[cfg(test)]
    pub(crate) fn sealing(&mut self) -> &mut Sealing {
        match &mut self.mode {
            Mode::Sealed(sealing) => sealing,
            _ => panic!("this protection does not encrypt"),
        }
    }

    /// The endpoint's incarnation: drawn at random for this protection, and what the machine must
    /// be made with.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// Whether datagrams are encrypted: then they must be whole, and go through
    /// [`PacketProtection::seal`].
    pub fn encrypts(&self) -> bool {
        matches!(self.mode, Mode::Sealed(_))
    }

    /// Whether a job key is in use: then the machine must ask for fresh contact (srd-protocol
    /// 14.6).
    pub fn has_key(&self) -> bool {
        !matches!(self.mode, Mode::Open)
    }

    /// By how many bytes sealing makes a datagram longer: 0 or 16. The largest datagram is that
    /// much smaller.
    pub fn overhead_bytes(&self) -> usize {
        if self.encrypts() { SEAL_BYTES } else { 0 }
    }

    /// Puts the tag into the head of a datagram whose other `rest_bytes` lie elsewhere: `show`
    /// shows them, stretch by stretch. Open networks need none. Fast path.
    ///
    /// # Panics
    /// When `head` is shorter than a header; in debug builds when this protection encrypts.
    pub fn tag_apart(
        &mut self,
        head: &mut [u8],
        rest_bytes: usize,
        show: impl FnOnce(&mut dyn FnMut(&[u8])),
    ) {
        debug_assert!(
            !self.encrypts(),
            "a protection that encrypts needs whole datagrams"
        );
        if let Mode::Tagged(tagging) = &mut self.mode {
            let tag = tagging.tag_apart(head, rest_bytes, show);
            head[TAG_RANGE].copy_from_slice(&tag.to_le_bytes());
        }
    }

    /// Makes a whole datagram ready to leave, in every mode: tags it, or encrypts it and appends
    /// the seal. Fast path.
    ///
    /// # Panics
    /// When it is shorter than a header, or is to be encrypted and names another source than this
    /// protection's incarnation: its nonce might repeat.
    pub fn seal(&mut self, datagram: &mut Vec<u8>) {
        assert!(datagram.len() >= HEADER_BYTES, "a header has 48 bytes");
        match &mut self.mode {
            Mode::Open => {}
            Mode::Tagged(tagging) => {
                let tag = tagging.tag(datagram);
                datagram[TAG_RANGE].copy_from_slice(&tag.to_le_bytes());
            }
            Mode::Sealed(sealing) => {
                assert_eq!(
                    source_of(datagram),
                    self.incarnation,
                    "the machine was made with the incarnation of its protection"
                );
                datagram[FLAGS] |= SEALED;
                sealing.seal(datagram);
            }
        }
    }

    /// [`PacketProtection::open`] for a datagram that must stay as it is. Fast path.
    ///
    /// # Errors
    /// As [`PacketProtection::open`].
    ///
    /// # Panics
    /// When this protection encrypts.
    pub fn check(&mut self, datagram: &[u8]) -> Result<usize, Rejected> {
        assert!(!self.encrypts(), "what is encrypted cannot stay as it is");
        self.judge(datagram)
            .inspect_err(|why| self.rejections.count(*why))
    }

    /// Checks a datagram that came from the network, decrypts it in place if need be, and answers
    /// with its length without the seal. To be called before anything else looks at it. Fast path.
    ///
    /// # Errors
    /// Why it must be dropped; it is counted. Its bytes may then have been overwritten.
    pub fn open(&mut self, datagram: &mut [u8]) -> Result<usize, Rejected> {
        let verdict = self.judge(datagram).and_then(|length| {
            let Mode::Sealed(sealing) = &mut self.mode else {
                return Ok(length);
            };
            if sealing.open(source_of(datagram), datagram) {
                Ok(length - SEAL_BYTES)
            } else {
                Err(Rejected::Forged)
            }
        });
        verdict.inspect_err(|why| self.rejections.count(*why))
    }

    /// Everything but what is encrypted.
    fn judge(&mut self, datagram: &[u8]) -> Result<usize, Rejected> {
        let length = datagram.len();
        if length < HEADER_BYTES + self.overhead_bytes() {
            return Err(Rejected::Short);
        }
        if (datagram[FLAGS] & SEALED != 0) != self.encrypts() {
            return Err(Rejected::Mode);
        }
        match &mut self.mode {
            Mode::Open if written(datagram) != 0 => Err(Rejected::Mode),
            Mode::Open => Ok(length),
            Mode::Tagged(tagging) => {
                // One comparison of one word: no shortcut tells how much of a guess was right.
                if written(datagram) ^ tagging.tag(datagram) == 0 {
                    Ok(length)
                } else {
                    Err(Rejected::Forged)
                }
            }
            Mode::Sealed(_) => Ok(length),
        }
    }

    /// What has been turned away since the protection was made.
    pub fn rejections(&self) -> Rejections {
        self.rejections
    }
}

fn word(datagram: &[u8], range: std::ops::Range<usize>) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&datagram[range]);
    u64::from_le_bytes(bytes)
}

fn written(datagram: &[u8]) -> u64 {
    word(datagram, TAG_RANGE)
}

fn source_of(datagram: &[u8]) -> u64 {
    word(datagram, SOURCE)
}

#[cfg(test)]
#[path = "protection_tests.rs"]
mod tests;
