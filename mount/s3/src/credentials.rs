// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Credentials that are looked for anew when the store says that they have ended. The SDK renews
//! those of which it knows when they end, and reads a profile's files once. A session token that
//! another program writes into these files every few hours would end with the first one.
//! [`mod@crate::connect`] has the client use this.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use aws_config::default_provider::credentials::DefaultCredentialsChain;
use aws_config::profile::ProfileFileCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{self, ProvideCredentials, future};
use aws_sdk_s3::config::interceptors::InterceptorContext;
use aws_sdk_s3::config::retry::{ClassifyRetry, RetryAction};
use aws_sdk_s3::config::{Credentials, Region, SharedCredentialsProvider, SharedHttpClient};

use crate::signed_with::{Mark, Marks, SignedWith};

/// Chosen: so long before they end credentials are renewed, as the SDK does.
const BEFORE_END: Duration = Duration::from_secs(10);
/// Chosen: those that do not say when they end are looked at so often, as the SDK does.
const LOOK_AGAIN: Duration = Duration::from_secs(15 * 60);
/// Chosen: who looks for credentials waits no longer, as in the SDK.
const LOOK_LIMIT: Duration = Duration::from_secs(5);
/// What stores say of credentials that have ended, or that somebody replaced: S3, and for session
/// tokens MinIO.
const ENDED: [&str; 5] = [
    "ExpiredToken",
    "TokenRefreshRequired",
    "InvalidToken",
    "InvalidTokenId",
    "InvalidAccessKeyId",
];

/// The credentials of a mount. Clones share them.
#[derive(Clone)]
pub struct Renewed {
    shared: Arc<Shared>,
}

struct Shared {
    http: SharedHttpClient,
    region: Region,
    profile: Option<String>,
    marks: Marks,
    state: Mutex<State>,
    /// One asks, and the others wait.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    /// Where the SDK finds credentials. It remembers the files that it read.
    source: Option<SharedCredentialsProvider>,
    current: Option<(Credentials, Instant)>,
    /// Those that the store refused last, and has not taken since.
    ended: Option<Mark>,
    /// When nothing was found last: that is the answer to all who waited, too.
    failed: Option<Instant>,
    /// The same ones were found again.
    has_no_others: bool,
}

impl Renewed {
    /// Of a profile, or those that the SDK finds.
    pub fn new(http: SharedHttpClient, region: Region, profile: Option<String>) -> Self {
        let shared = Shared {
            http,
            region,
            profile,
            marks: Marks::default(),
            state: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Puts to each answer the mark of its credentials, without which none is judged.
    pub fn signed_with(&self) -> SignedWith {
        SignedWith::new(self.shared.marks.clone())
    }

    fn mark(&self, credentials: &Credentials) -> Mark {
        let token = credentials.session_token();
        self.shared.marks.of(credentials.access_key_id(), token)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> Option<Credentials> {
        let state = self.state();
        let (credentials, since) = state.current.as_ref()?;
        let is_good = match credentials.expiry() {
            Some(end) => end > SystemTime::now() + BEFORE_END,
            None => since.elapsed() < LOOK_AGAIN,
        };
        is_good.then(|| credentials.clone())
    }

    async fn find(&self) -> provider::Result {
        if let Some(current) = self.current() {
            return Ok(current);
        }
        let asked = Instant::now();
        let _turn = self.shared.turn.lock().await;
        if let Some(current) = self.current() {
            return Ok(current);
        }
        if self.state().failed.is_some_and(|failed| failed > asked) {
            return Err(CredentialsError::not_loaded("none were found just now"));
        }
        let look = async {
            let source = self.source().await;
            let found = source.provide_credentials().await?;
            provider::Result::Ok(found).map(|found| (source, found))
        };
        let looked = tokio::time::timeout(LOOK_LIMIT, look).await;
        let looked =
            looked.unwrap_or_else(|_| Err(CredentialsError::provider_timed_out(LOOK_LIMIT)));
        let mut state = self.state();
        let (source, found) = match looked {
            Ok(found) => found,
            Err(error) => {
                state.failed = Some(Instant::now());
                return Err(error);
            }
        };
        // One that says when its credentials end renews them itself.
        state.source = found.expiry().map(|_| source);
        state.current = Some((found.clone(), Instant::now()));
        Ok(found)
    }

    /// Where credentials are found, with no memory of what was found before if that has ended.
    async fn source(&self) -> SharedCredentialsProvider {
        if let Some(source) = self.state().source.clone() {
            return source;
        }
        // A new one: its clones share the files that were read.
        let config = ProviderConfig::without_region().with_http_client(self.shared.http.clone());
        let region = self.shared.region.clone();
        match &self.shared.profile {
            Some(profile) => {
                let source = ProfileFileCredentialsProvider::builder();
                let config = config.with_region(Some(region));
                let source = source.configure(&config).profile_name(profile);
                SharedCredentialsProvider::new(source.build())
            }
            None => {
                // Else the chain would look for a region each time.
                let source = DefaultCredentialsChain::builder().region(region);
                SharedCredentialsProvider::new(source.configure(config).build().await)
            }
        }
    }

    /// The store refused a request with these credentials since they have ended. Whether another
    /// attempt has a chance: not if the same ones were found again.
    fn have_ended(&self, refused: Mark) -> bool {
        let mut state = self.state();
        let Some((current, _)) = &state.current else {
            // Others are being looked for; the SDK asks twice about one answer.
            return !(state.has_no_others && state.ended == Some(refused));
        };
        if self.mark(current) != refused {
            // It was signed before these were found.
            return true;
        }
        let is_same = state.ended == Some(refused);
        (state.current, state.source) = (None, None);
        state.ended = Some(refused);
        state.has_no_others = is_same;
        !is_same
    }

    /// The store took a request with these credentials.
    fn were_taken(&self, taken: Mark) {
        let mut state = self.state();
        if state.ended == Some(taken) {
            (state.ended, state.has_no_others) = (None, false);
        }
    }
}

impl fmt::Debug for Renewed {
    /// No word of the tokens: the client's text has this.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Renewed").finish_non_exhaustive()
    }
}

impl ProvideCredentials for Renewed {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(self.find())
    }
}

impl ClassifyRetry for Renewed {
    fn classify_retry(&self, context: &InterceptorContext) -> RetryAction {
        let Some(answer) = context.response() else {
            return RetryAction::NoActionIndicated;
        };
        let Some(mark) = answer.extension::<Mark>() else {
            return RetryAction::NoActionIndicated;
        };
        if answer.status().is_success() {
            self.were_taken(*mark);
            return RetryAction::NoActionIndicated;
        }
        let body = answer.body().bytes().unwrap_or_default();
        match says_ended(answer.status().as_u16(), body) {
            true if self.have_ended(*mark) => RetryAction::server_error(),
            true => RetryAction::RetryForbidden,
            false => RetryAction::NoActionIndicated,
        }
    }

    fn name(&self) -> &'static str {
        "credentials that have ended"
    }
}

/// Whether a code is about credentials that have ended.
pub fn is_ended(code: &str) -> bool {
    ENDED.contains(&code)
}

/// Whether the store refused a request since its credentials have ended. The answer to a HEAD has
/// no body that says so: [`crate::bucket`] asks otherwise then.
fn says_ended(status: u16, body: &[u8]) -> bool {
    let has = |code: &str| {
        let element = format!("<Code>{code}</Code>");
        body.windows(element.len())
            .any(|part| part == element.as_bytes())
    };
    matches!(status, 400 | 401 | 403) && ENDED.into_iter().any(has)
}

#[cfg(test)]
mod tests {
    use aws_smithy_http_client::Builder;

    use super::*;

    fn renewed() -> Renewed {
        let http = Builder::new().build_http();
        Renewed::new(http, Region::new("us-east-1"), None)
    }

    fn found(renewed: &Renewed, token: &str) -> Mark {
        let token = Some(token.to_owned());
        let found = Credentials::new("key", "secret", token, None, "test");
        let mark = renewed.mark(&found);
        renewed.state().current = Some((found, Instant::now()));
        mark
    }

    fn current(renewed: &Renewed) -> Option<Mark> {
        renewed.current().map(|current| renewed.mark(&current))
    }

    #[test]
    fn late_refusals_of_the_old_ones_leave_the_new_ones() {
        let renewed = renewed();
        let first = found(&renewed, "first");
        assert!(renewed.have_ended(first));
        assert_eq!(current(&renewed), None);
        let second = found(&renewed, "second");
        for _ in 0..4 {
            assert!(renewed.have_ended(first));
            assert_eq!(current(&renewed), Some(second));
        }
        assert!(renewed.have_ended(second));
        assert_eq!(current(&renewed), None);
    }

    #[test]
    fn the_same_ones_are_repeated_once_until_the_store_takes_them() {
        let renewed = renewed();
        let only = found(&renewed, "only");
        for _ in 0..2 {
            assert!(renewed.have_ended(only));
            found(&renewed, "only");
            assert!(!renewed.have_ended(only));
            // The SDK asks twice.
            assert!(!renewed.have_ended(only));
            found(&renewed, "only");
            assert!(!renewed.have_ended(only));
            found(&renewed, "only");
            renewed.were_taken(only);
        }
    }

    #[test]
    fn codes_of_stores_are_known_and_others_are_not() {
        let body = |code: &str| format!("<?xml?><Error><Code>{code}</Code></Error>");
        for code in ENDED {
            assert!(says_ended(403, body(code).as_bytes()), "{code}");
            assert!(!says_ended(503, body(code).as_bytes()), "{code}");
        }
        for code in ["AccessDenied", "InvalidRequest", "ExpiredTokenOfMine"] {
            assert!(!says_ended(400, body(code).as_bytes()), "{code}");
        }
        assert!(!says_ended(400, b""));
    }
}
