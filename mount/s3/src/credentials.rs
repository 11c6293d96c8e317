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

use crate::clock::Clock;
use crate::signed_with::{Mark, Marks, SignedWith};

/// Chosen: so long before they end credentials are renewed, as the SDK does.
const BEFORE_END: Duration = Duration::from_secs(10);
/// Chosen: those that do not say when they end are looked at so often, as the SDK does.
const LOOK_AGAIN: Duration = Duration::from_secs(15 * 60);
/// Chosen: who looks for credentials waits no longer, as in the SDK.
const LOOK_LIMIT: Duration = Duration::from_secs(5);
/// Chosen: where nothing new was found, nobody looks again for so long. A look may be a program
/// that runs, or a request to a server that serves few of them.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
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
    clock: Clock,
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
    /// When nothing was found last.
    failed: Option<Instant>,
}

impl State {
    /// Whether nothing was found just now, or since somebody `asked`, who waited for that.
    fn has_failed(&self, asked: Instant, now: Instant) -> bool {
        let is_new = |failed: Instant| failed > asked || now < failed + LOOK_PAUSE;
        self.failed.is_some_and(is_new)
    }
}

impl Renewed {
    /// Of a profile, or those that the SDK finds.
    pub fn new(
        http: SharedHttpClient,
        region: Region,
        profile: Option<String>,
        clock: Clock,
    ) -> Self {
        let shared = Shared {
            http,
            region,
            profile,
            clock,
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

    fn now(&self) -> Instant {
        self.shared.clock.now()
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
            None => self.now() < *since + LOOK_AGAIN,
        };
        is_good.then(|| credentials.clone())
    }

    /// Those that were found last, though it is time to look for others, while they have not ended.
    fn last(&self, now: SystemTime) -> Option<Credentials> {
        let state = self.state();
        let (credentials, _) = state.current.as_ref()?;
        let is_over = credentials.expiry().is_some_and(|end| end <= now);
        (!is_over).then(|| credentials.clone())
    }

    async fn find(&self) -> provider::Result {
        if let Some(current) = self.current() {
            return Ok(current);
        }
        let asked = self.now();
        let _turn = self.shared.turn.lock().await;
        if let Some(current) = self.current() {
            return Ok(current);
        }
        if self.state().has_failed(asked, self.now()) {
            let none = || CredentialsError::not_loaded("none were found just now");
            return self.last(SystemTime::now()).ok_or_else(none);
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
                state.failed = Some(self.now());
                drop(state);
                return self.last(SystemTime::now()).ok_or(error);
            }
        };
        // One that says when its credentials end renews them itself.
        state.source = found.expiry().map(|_| source);
        state.current = Some((found.clone(), self.now()));
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
    /// attempt has a chance: not if the same ones were found again just before `now`.
    fn have_ended(&self, refused: Mark, now: Instant) -> bool {
        let mut state = self.state();
        let Some((current, since)) = &state.current else {
            // Others are being looked for; the SDK asks twice about one answer.
            return true;
        };
        if self.mark(current) != refused {
            // It was signed before these were found.
            return true;
        }
        if state.ended == Some(refused) && now < *since + LOOK_PAUSE {
            return false;
        }
        (state.current, state.source) = (None, None);
        state.ended = Some(refused);
        true
    }

    /// The store took a request with these credentials.
    fn were_taken(&self, taken: Mark) {
        let mut state = self.state();
        if state.ended == Some(taken) {
            state.ended = None;
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
            true if self.have_ended(*mark, self.now()) => RetryAction::server_error(),
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
        Renewed::new(http, Region::new("us-east-1"), None, Clock::default())
    }

    fn found(renewed: &Renewed, token: &str, now: Instant) -> Mark {
        let token = Some(token.to_owned());
        let found = Credentials::new("key", "secret", token, None, "test");
        let mark = renewed.mark(&found);
        renewed.state().current = Some((found, now));
        mark
    }

    fn current(renewed: &Renewed) -> Option<Mark> {
        renewed.current().map(|current| renewed.mark(&current))
    }

    #[test]
    fn late_refusals_of_the_old_ones_leave_the_new_ones() {
        let (renewed, now) = (renewed(), Instant::now());
        let first = found(&renewed, "first", now);
        assert!(renewed.have_ended(first, now));
        assert_eq!(current(&renewed), None);
        let second = found(&renewed, "second", now);
        for _ in 0..4 {
            assert!(renewed.have_ended(first, now));
            assert_eq!(current(&renewed), Some(second));
        }
        assert!(renewed.have_ended(second, now));
        assert_eq!(current(&renewed), None);
    }

    #[test]
    fn the_same_ones_are_looked_for_once_a_second_until_the_store_takes_them() {
        let (renewed, began) = (renewed(), Instant::now());
        let mut looks = 0;
        let only = found(&renewed, "only", began);
        // 30 calls in three seconds.
        for call in 0..30 {
            let now = began + Duration::from_millis(100) * call;
            while renewed.have_ended(only, now) {
                // The SDK asks twice about one answer.
                assert!(renewed.have_ended(only, now));
                found(&renewed, "only", now);
                looks += 1;
            }
            assert!(!renewed.have_ended(only, now));
            assert_eq!(current(&renewed), Some(only));
        }
        assert_eq!(looks, 3);
        renewed.were_taken(only);
        let now = began + Duration::from_millis(2901);
        assert!(renewed.have_ended(only, now), "they were good again");
    }

    #[test]
    fn where_none_are_found_nobody_looks_for_a_second() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let state = State {
            failed: Some(now),
            ..State::default()
        };
        assert!(!State::default().has_failed(now, now));
        assert!(state.has_failed(now, now + second / 2));
        assert!(!state.has_failed(now, now + second));
        // Who waited for that look hears of it, however long it took.
        let earlier = State {
            failed: Some(now + 2 * second),
            ..State::default()
        };
        assert!(earlier.has_failed(now, now + 4 * second));
    }

    #[test]
    fn old_ones_serve_until_they_end_where_no_others_are_found() {
        let (renewed, now) = (renewed(), SystemTime::now());
        let end = now + BEFORE_END / 2;
        let old = Credentials::new("key", "secret", None, Some(end), "test");
        renewed.state().current = Some((old.clone(), Instant::now()));
        assert_eq!(current(&renewed), None, "it is time to look for others");
        assert_eq!(renewed.last(now), Some(old.clone()));
        assert_eq!(renewed.last(end), None);
        assert!(renewed.have_ended(renewed.mark(&old), Instant::now()));
        assert_eq!(renewed.last(now), None, "the store refused them");
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
