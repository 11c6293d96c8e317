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

/// Chosen: so long before they end credentials are renewed, as the SDK does.
const BEFORE_END: Duration = Duration::from_secs(10);
/// Chosen: those that do not say when they end are looked at so often, as the SDK does.
const LOOK_AGAIN: Duration = Duration::from_secs(15 * 60);
/// Chosen: who looks for credentials waits no longer, as in the SDK.
const LOOK_LIMIT: Duration = Duration::from_secs(5);
/// Chosen: as long after new ones were found a refusal is of a request with the old ones.
const STRAGGLERS: Duration = Duration::from_secs(3);

/// The credentials of a mount. Clones share them.
#[derive(Clone)]
pub struct Renewed {
    shared: Arc<Shared>,
}

struct Shared {
    http: SharedHttpClient,
    region: Region,
    profile: Option<String>,
    state: Mutex<State>,
    /// One asks, and the others wait.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    /// Where the SDK finds credentials. It remembers the files that it read.
    source: Option<SharedCredentialsProvider>,
    current: Option<(Credentials, Instant)>,
    /// The session token, or the key, that the store refused last.
    ended: Option<String>,
    /// When nothing was found last: that is the answer to all who waited, too.
    failed: Option<Instant>,
    /// The same ones were found again.
    has_no_others: bool,
}

/// What tells credentials from those that were there before.
fn mark(credentials: &Credentials) -> &str {
    let token = credentials.session_token();
    token.unwrap_or_else(|| credentials.access_key_id())
}

impl Renewed {
    /// Of a profile, or those that the SDK finds.
    pub fn new(http: SharedHttpClient, region: Region, profile: Option<String>) -> Self {
        let shared = Shared {
            http,
            region,
            profile,
            state: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
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

    /// The store refused a request since its credentials have ended. Whether another attempt has a
    /// chance: not if the same credentials were found again.
    fn have_ended(&self) -> bool {
        let mut state = self.state();
        let Some((current, since)) = &state.current else {
            // Others are being looked for; the SDK asks twice about one answer.
            return !state.has_no_others;
        };
        let current = mark(current).to_owned();
        let is_same = state.ended.as_ref() == Some(&current);
        if !is_same && state.ended.is_some() && since.elapsed() < STRAGGLERS {
            return true;
        }
        (state.current, state.source) = (None, None);
        state.ended = Some(current);
        state.has_no_others = is_same;
        !is_same
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
        match says_ended(context) {
            true if self.have_ended() => RetryAction::server_error(),
            true => RetryAction::RetryForbidden,
            false => RetryAction::NoActionIndicated,
        }
    }

    fn name(&self) -> &'static str {
        "credentials that have ended"
    }
}

/// Whether the store refused a request since its credentials have ended. The SDK has no request any
/// more at that time.
fn says_ended(context: &InterceptorContext) -> bool {
    let Some(answer) = context.response() else {
        return false;
    };
    let body = answer.body().bytes().unwrap_or_default();
    let has = |code: &str| body.windows(code.len()).any(|part| part == code.as_bytes());
    match answer.status().as_u16() {
        // The answer to a HEAD has no body, and hardly anything else gives this status to one.
        400 if body.is_empty() => true,
        400 | 401 | 403 => ["ExpiredToken<", "TokenRefreshRequired<"]
            .into_iter()
            .any(has),
        _ => false,
    }
}
