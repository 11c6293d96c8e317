// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A store whose names and listings are asked for once in a job, because their owners remember them
//! for a while. docs/job-cache.md. Bytes and changes go straight to the store; [`crate::sources`]
//! asks owners for bytes.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use weft_store::{
    Condition, ETag, Failure, ListRequest, Metadata, ObjectInfo, Objects, Page, Part, Range, Store,
    StoreError, Upload, Uploads,
};

use crate::job::{ELSE, FOLLOWS, Job, MISSING, refusal};
use crate::job_messages::{self, Question, Wanted};
use crate::names;
use crate::new_names::NewNames;
use crate::shared::messages::{Ask, ByName, subject};

/// Chosen: names that an owner remembers; some tens of megabytes.
const NAMES: usize = 100_000;

/// What was asked of the store, when, and what it said; whoever wants the same waits for it.
struct Remembered<K, V> {
    all: Mutex<HashMap<K, Slot<V>>>,
}
type Slot<V> = Arc<tokio::sync::Mutex<Option<(Instant, V)>>>;

impl<K: Hash + Eq + Clone, V: Clone> Remembered<K, V> {
    fn new() -> Self {
        Self {
            all: Mutex::default(),
        }
    }

    /// What is remembered of `what`, if it was asked for no longer ago than `age`; else what `ask`
    /// says. `limit` is how many are remembered.
    async fn get<E>(
        &self,
        what: K,
        age: Duration,
        limit: usize,
        ask: impl Future<Output = Result<V, E>> + Send,
    ) -> Result<V, E> {
        let wanted = Instant::now();
        let slot = {
            let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            if all.len() >= limit {
                // Those that are being asked for are held by who asks.
                all.retain(|_, slot| Arc::strong_count(slot) > 1);
            }
            Arc::clone(all.entry(what).or_default())
        };
        let mut known = slot.lock().await;
        if let Some((at, value)) = &*known
            && *at + age > wanted
        {
            return Ok(value.clone());
        }
        let at = Instant::now();
        let value = ask.await?;
        *known = Some((at, value.clone()));
        Ok(value)
    }

    fn clear(&self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.clear();
    }
}

/// What is asked of owners from a moment on is not older than another one.
#[derive(Clone, Copy)]
struct Freshness {
    asked_from: Instant,
    not_before: Instant,
}

/// A store and the job around it.
pub struct JobStore {
    store: Arc<dyn Store>,
    /// The other nodes.
    pub job: Arc<Job>,
    ttl: Duration,
    objects: Remembered<String, Option<ObjectInfo>>,
    pages: Remembered<Wanted, Page>,
    /// Of names, by this node.
    last_change: Mutex<Option<Instant>>,
    freshness: Mutex<Option<Freshness>>,
    /// Those that this node owns.
    pub(crate) new_names: NewNames,
    /// No mount of the job makes names.
    is_read_only: bool,
}

impl JobStore {
    /// Over `store`; names are believed for `ttl`.
    pub fn new(store: Arc<dyn Store>, job: Arc<Job>, ttl: Duration) -> Self {
        Self {
            store,
            job,
            ttl,
            objects: Remembered::new(),
            pages: Remembered::new(),
            last_change: Mutex::default(),
            freshness: Mutex::default(),
            new_names: NewNames::default(),
            is_read_only: false,
        }
    }

    /// The same where no mount of the job makes names: owners are not asked what is new.
    pub fn read_only(self) -> Self {
        Self {
            is_read_only: true,
            ..self
        }
    }

    /// Whether other mounts of the job may make names that this one knows as missing.
    pub(crate) fn may_be_new(&self) -> bool {
        !self.is_read_only && !self.ttl.is_zero()
    }

    /// What is asked of owners from now on is not older than `moment`.
    pub(crate) fn freshen(&self, moment: Instant) {
        let mut freshness = self.freshness();
        if freshness.is_none_or(|known| known.not_before < moment) {
            *freshness = Some(Freshness {
                asked_from: Instant::now(),
                not_before: moment,
            });
        }
    }

    fn freshness(&self) -> MutexGuard<'_, Option<Freshness>> {
        self.freshness
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// How old an owner's answer may be.
    fn oldest(&self) -> Duration {
        let age = self.freshness().map(|known| known.not_before.elapsed());
        age.map_or(self.ttl, |age| age.min(self.ttl))
    }

    /// Whether what was asked for at `asked` shows the store as it was at `moment` or later. What
    /// an owner answers may be older than the question.
    pub(crate) fn shows(&self, asked: Instant, moment: Instant) -> bool {
        let is_fresh = |known: Freshness| known.asked_from <= asked && known.not_before >= moment;
        let at_latest = moment.checked_add(self.ttl);
        at_latest.is_some_and(|at| asked >= at) || self.freshness().is_some_and(is_fresh)
    }

    /// A name is in the store from now on. Its owner hears of it before this node's program does.
    pub(crate) async fn made(&self, key: &str) {
        let key = key.strip_suffix('/').unwrap_or(key);
        if !self.may_be_new() || names::is_own_key(key) {
            return;
        }
        let made = Ask::Name {
            node: self.job.own() as u64,
            what: ByName::Made,
            key: key.to_owned(),
        };
        if self
            .job
            .ask_owner(&subject(key), made.write())
            .await
            .is_none()
        {
            self.new_names.note(key);
        }
    }

    /// The store itself, without what the job remembers of it.
    pub fn beneath(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// Whether names may be asked of others: this node's programs see what they did.
    fn may_share(&self) -> bool {
        let last = self
            .last_change
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        !self.ttl.is_zero() && last.is_none_or(|at| at.elapsed() > 2 * self.ttl)
    }

    /// This node's programs, or those that it works for, changed names.
    pub(crate) fn note_change(&self) {
        *self
            .last_change
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.objects.clear();
        self.pages.clear();
    }

    async fn own_object(&self, key: &str, age: Duration) -> Result<Option<ObjectInfo>, StoreError> {
        self.objects
            .get(key.to_owned(), age, NAMES / 10, self.store.find(key))
            .await
    }

    async fn own_page(&self, wanted: Wanted, age: Duration) -> Result<Page, StoreError> {
        let request = ListRequest::from(wanted.clone());
        let limit = NAMES / usize::from(request.limit.max(100));
        self.pages
            .get(wanted, age, limit, self.store.list(&request))
            .await
    }

    /// Answers another node about names.
    pub async fn answer(&self, question: Question) -> [Bytes; 2] {
        let mut words = BytesMut::new();
        let answered = match question {
            Question::Object(age, key) => match self.own_object(&key, age).await {
                Ok(Some(info)) => {
                    job_messages::put_object(&mut words, &info);
                    Ok(())
                }
                Ok(None) => return refusal(MISSING, ""),
                Err(error) => Err(error.to_string()),
            },
            Question::Page(age, wanted) => match self.own_page(wanted, age).await {
                Ok(page) => {
                    job_messages::put_page(&mut words, &page);
                    Ok(())
                }
                Err(error) => Err(error.to_string()),
            },
            Question::Bytes { .. } => Err("bytes are answered elsewhere".to_owned()),
        };
        match answered {
            Ok(()) if words.len() as u64 <= crate::job::ANSWER_BYTES => {
                [Bytes::from(vec![FOLLOWS]), words.freeze()]
            }
            Ok(()) => refusal(ELSE, "the answer is too long"),
            Err(words) => refusal(ELSE, &words),
        }
    }
}

#[async_trait]
impl Objects for JobStore {
    async fn head(&self, key: &str) -> Result<ObjectInfo, StoreError> {
        if !self.may_share() {
            return self.store.head(key).await;
        }
        let subject = format!("H{key}");
        let age = self.oldest();
        let question = Question::Object(age, key.to_owned());
        let found = match self.job.ask(subject.as_bytes(), &question).await {
            Some(None) => None,
            Some(Some(mut bytes)) => match job_messages::object(&mut bytes) {
                Some(info) => Some(info),
                None => return self.store.head(key).await,
            },
            None => self.own_object(key, age).await?,
        };
        let missing = || StoreError::new(Failure::Missing, "HeadObject", key, "there is none");
        found.ok_or_else(missing)
    }

    async fn get(&self, key: &str, range: Range, etag: &ETag) -> Result<Bytes, StoreError> {
        self.store.get(key, range, etag).await
    }

    async fn list(&self, request: &ListRequest) -> Result<Page, StoreError> {
        if !self.may_share() {
            return self.store.list(request).await;
        }
        let wanted = Wanted::from(request);
        if !wanted.fits() {
            return self.store.list(request).await;
        }
        let question = |age| Question::Page(age, wanted.clone());
        let subject = [b"L", &*question(self.ttl).write()].concat();
        let age = self.oldest();
        match self.job.ask(&subject, &question(age)).await {
            Some(Some(mut bytes)) => match job_messages::page(&mut bytes) {
                Some(page) => Ok(page),
                None => self.store.list(request).await,
            },
            _ => self.own_page(wanted, age).await,
        }
    }

    async fn describe(&self, key: &str) -> Result<(ObjectInfo, Metadata), StoreError> {
        self.store.describe(key).await
    }

    async fn put_with(
        &self,
        key: &str,
        body: Bytes,
        about: &Metadata,
        when: &Condition,
    ) -> Result<ETag, StoreError> {
        let done = self.store.put_with(key, body, about, when).await;
        self.note_change();
        self.made(key).await;
        done
    }

    async fn delete(&self, key: &str, when: &Condition) -> Result<(), StoreError> {
        let done = self.store.delete(key, when).await;
        self.note_change();
        done
    }

    async fn copy(
        &self,
        from: &str,
        etag: &ETag,
        to: &str,
        when: &Condition,
    ) -> Result<ETag, StoreError> {
        let done = self.store.copy(from, etag, to, when).await;
        self.note_change();
        self.made(to).await;
        done
    }
}

#[async_trait]
impl Uploads for JobStore {
    async fn begin_with(&self, key: &str, about: &Metadata) -> Result<Upload, StoreError> {
        self.store.begin_with(key, about).await
    }

    async fn send(&self, upload: &Upload, number: u32, body: Bytes) -> Result<Part, StoreError> {
        self.store.send(upload, number, body).await
    }

    async fn copy_part(
        &self,
        upload: &Upload,
        number: u32,
        source: (&str, &ETag),
        range: Range,
    ) -> Result<Part, StoreError> {
        self.store.copy_part(upload, number, source, range).await
    }

    async fn complete(
        &self,
        upload: &Upload,
        parts: &[Part],
        when: &Condition,
    ) -> Result<ETag, StoreError> {
        let done = self.store.complete(upload, parts, when).await;
        self.note_change();
        self.made(&upload.key).await;
        done
    }

    async fn abort(&self, upload: &Upload) -> Result<(), StoreError> {
        self.store.abort(upload).await
    }

    async fn list_uploads(&self, prefix: &str) -> Result<Vec<Upload>, StoreError> {
        self.store.list_uploads(prefix).await
    }
}
