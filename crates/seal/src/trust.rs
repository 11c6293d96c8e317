// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which protection the user's settings ask for. Called by the endpoint when it opens its route
//! between hosts.

use std::fmt;
use std::path::PathBuf;

use crate::job_key::JobKey;
use crate::key_file;
use crate::protection::PacketProtection;

/// What FI_WEFT_* say about trust. Texts are as the user gave them; `None` is not set.
#[derive(Clone, Default)]
pub struct Trust {
    /// FI_WEFT_JOB_KEY.
    pub job_key: Option<JobKey>,
    /// FI_WEFT_JOB_KEY_FILE; FI_WEFT_JOB_KEY goes before it.
    pub job_key_file: Option<PathBuf>,
    /// FI_WEFT_ENCRYPT.
    pub encrypt: bool,
    /// FI_WEFT_TRUST_NETWORK.
    pub trust_network: bool,
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Trust");
        shown.field("job_key", &self.job_key.is_some());
        shown.field("job_key_file", &self.job_key_file);
        shown.field("encrypt", &self.encrypt);
        shown.field("trust_network", &self.trust_network).finish()
    }
}

impl PartialEq for Trust {
    fn eq(&self, other: &Self) -> bool {
        let text = |trust: &Self| trust.job_key.as_ref().map(JobKey::to_text);
        text(self) == text(other)
            && self.job_key_file == other.job_key_file
            && self.encrypt == other.encrypt
            && self.trust_network == other.trust_network
    }
}

impl Eq for Trust {}

/// What the settings come to.
#[derive(Debug)]
pub enum Choice {
    /// Open the route between hosts with this protection.
    Protected(PacketProtection),
    /// No key, and the network is not trusted: this host alone. A send to another host fails, and
    /// the user is told [`WAYS_OUT`].
    SameHostOnly,
}

/// Ends what a user reads who sends to another host without a key: the two things to do.
pub const WAYS_OUT: &str = "Start the job with weft run, which makes a key for it, or set \
     FI_WEFT_JOB_KEY (or FI_WEFT_JOB_KEY_FILE) to the same 64 hexadecimal digits for all its \
     processes (openssl rand -hex 32); or, if everybody on the network is trusted, set \
     FI_WEFT_TRUST_NETWORK=1 for all of them.";

/// The settings contradict each other, or the key cannot be had: no endpoint should open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoTrust {
    sentence: String,
}

impl fmt::Display for NoTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for NoTrust {}

impl Trust {
    /// Whether other hosts are talked to at all.
    pub fn reaches_hosts(&self) -> bool {
        self.job_key.is_some() || self.job_key_file.is_some() || self.trust_network
    }

    /// Makes the protection of one endpoint. A key goes before FI_WEFT_TRUST_NETWORK: who has one
    /// is asked for it. Setup.
    ///
    /// # Errors
    /// One sentence with the variable, what is wrong with it and what to do.
    pub fn choose(&self) -> Result<Choice, NoTrust> {
        let protection = match (self.key()?, self.encrypt) {
            (Some(key), true) => PacketProtection::sealed(&key),
            (Some(key), false) => PacketProtection::tagged(&key),
            (None, true) => {
                return Err(NoTrust {
                    sentence: "FI_WEFT_ENCRYPT is set, but there is no key to encrypt with: start \
                         the job with weft run, or set FI_WEFT_JOB_KEY (openssl rand -hex 32)"
                        .to_owned(),
                });
            }
            (None, false) if self.trust_network => PacketProtection::open_network(),
            (None, false) => return Ok(Choice::SameHostOnly),
        };
        protection.map(Choice::Protected).map_err(|error| NoTrust {
            sentence: error.to_string(),
        })
    }

    fn key(&self) -> Result<Option<JobKey>, NoTrust> {
        if self.job_key.is_some() {
            return Ok(self.job_key.clone());
        }
        let Some(path) = &self.job_key_file else {
            return Ok(None);
        };
        key_file::read(path).map(Some).map_err(|error| NoTrust {
            sentence: format!("FI_WEFT_JOB_KEY_FILE is {}, but {error}", path.display()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn protection(trust: &Trust) -> PacketProtection {
        match trust.choose().unwrap() {
            Choice::Protected(protection) => protection,
            Choice::SameHostOnly => panic!("no protection"),
        }
    }

    #[test]
    fn without_key_and_without_trust_only_this_host_is_talked_to() {
        let trust = Trust::default();
        assert!(matches!(trust.choose(), Ok(Choice::SameHostOnly)));
        assert!(!trust.reaches_hosts());
        for way in ["weft run", "FI_WEFT_JOB_KEY", "FI_WEFT_TRUST_NETWORK=1"] {
            assert!(WAYS_OUT.contains(way));
        }
    }

    #[test]
    fn a_key_is_used_even_where_the_network_is_trusted() {
        let mut trust = Trust {
            trust_network: true,
            ..Trust::default()
        };
        assert!(!protection(&trust).has_key());
        trust.job_key = Some(JobKey::generate().unwrap());
        assert!(protection(&trust).has_key() && !protection(&trust).encrypts());
        trust.encrypt = true;
        assert!(protection(&trust).encrypts());
    }

    #[test]
    fn encryption_without_a_key_is_an_error_and_not_a_guess() {
        for trust_network in [false, true] {
            let trust = Trust {
                encrypt: true,
                trust_network,
                ..Trust::default()
            };
            let error = trust.choose().unwrap_err().to_string();
            assert!(error.contains("FI_WEFT_ENCRYPT") && error.contains("FI_WEFT_JOB_KEY"));
        }
    }

    #[test]
    fn a_key_file_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let text = JobKey::generate().unwrap().to_text();
        fs::write(&path, format!("{}\n", *text)).unwrap();
        let trust = Trust {
            job_key_file: Some(path.clone()),
            ..Trust::default()
        };
        for mode in [0o644, 0o640, 0o604, 0o620, 0o601] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let error = trust.choose().unwrap_err().to_string();
            assert!(error.contains("chmod 600") && error.contains("FI_WEFT_JOB_KEY_FILE"));
            assert!(error.contains(&format!("{mode:04o}")), "{error}");
        }
        for mode in [0o600, 0o400] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert!(protection(&trust).has_key());
        }
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "secret").unwrap();
        let error = trust.choose().unwrap_err().to_string();
        assert!(
            error.contains("6 characters") && !error.contains("secret"),
            "{error}"
        );
        fs::remove_file(&path).unwrap();
        let error = trust.choose().unwrap_err().to_string();
        assert!(error.contains("cannot be read"), "{error}");
    }

    #[test]
    fn debug_shows_that_there_is_a_key_and_not_which() {
        let trust = Trust {
            job_key: Some(JobKey::generate().unwrap()),
            ..Trust::default()
        };
        let text = trust.job_key.as_ref().unwrap().to_text();
        let shown = format!("{trust:?} {:?}", protection(&trust));
        assert!(
            shown.contains("job_key: true") && shown.contains("tagged"),
            "{shown}"
        );
        assert!(!shown.contains(&text[..8]));
    }
}
