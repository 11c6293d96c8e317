// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A listing in the order of the store's keys. Each page is asked for once, several at a time.
//! [`crate::folders`] reads an open folder by it, [`crate::tree_walks`] all keys below a folder.
//!
//! [`crate::tiling`] says which pages to ask for.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use weft_store::{ListRequest, ObjectInfo, Page, Store, StoreError};

use crate::fault::mount_ends;
use crate::names::{self, Listed, Named, PAGE_KEYS};
use crate::tiling::{Ask, Start, Tiling};

/// A page that came, with the number under which it was asked for and when.
type Came = (u64, Instant, Result<Page, StoreError>);

/// Pages of one listing, in order.
pub struct Pages {
    request: ListRequest,
    start: Start,
    tiling: Tiling<Instant>,
    /// The last key or group that was read.
    last: Option<String>,
    /// All up to this one is left out: the listing began anew.
    passed: Option<String>,
    came: UnboundedReceiver<Came>,
    sender: UnboundedSender<Came>,
}

impl Pages {
    /// Of all keys that begin with `prefix`, from `start` on; grouped by folder or not.
    pub fn new(prefix: String, by_folder: bool, start: Start) -> Self {
        let (sender, came) = unbounded_channel();
        Self {
            request: ListRequest {
                prefix,
                by_folder,
                limit: PAGE_KEYS,
                ..ListRequest::default()
            },
            tiling: Tiling::new(start.clone()),
            start,
            last: None,
            passed: None,
            came,
            sender,
        }
    }

    /// Below folders that are known: whole prefixes, in order. The first one is asked for by
    /// itself, and what follows it at the same time.
    pub fn below(mut self, folders: Arc<Vec<String>>) -> Self {
        self.tiling = self.tiling.below(folders).first_apart();
        self
    }

    /// The key up to which all pages were read, if that is known.
    pub fn read_to(&self) -> Option<&str> {
        // What was begun anew comes from the beginning once more.
        self.tiling.taken_to().filter(|_| self.passed.is_none())
    }

    /// Whether one page is asked for after the other, and none before it is wanted.
    pub fn set_narrow(&mut self, is_narrow: bool) {
        self.tiling.set_narrow(is_narrow);
    }

    /// The next page, when it was asked for, and whether it is the last one. Nothing behind that.
    ///
    /// # Errors
    /// What the store said of any page; it is asked for again by who calls again.
    pub async fn next(
        &mut self,
        store: &Arc<dyn Store>,
        runtime: &Handle,
    ) -> Result<Option<(Page, Instant, bool)>, StoreError> {
        loop {
            if let Some((page, at, is_last)) = self.tiling.take() {
                self.ask(store, runtime);
                return Ok(Some((self.pass(page), at, is_last)));
            }
            if self.tiling.is_done() {
                return Ok(None);
            }
            self.ask(store, runtime);
            let Some((id, at, page)) = self.came.recv().await else {
                return Err(mount_ends("ListObjectsV2", &self.request.prefix));
            };
            self.settle(id, at, page)?;
            while let Ok((id, at, page)) = self.came.try_recv() {
                self.settle(id, at, page)?;
            }
        }
    }

    /// The same if it is here already: nothing is waited for.
    ///
    /// # Errors
    /// As above.
    pub fn next_now(
        &mut self,
        store: &Arc<dyn Store>,
        runtime: &Handle,
    ) -> Result<Option<(Page, Instant, bool)>, StoreError> {
        while let Ok((id, at, page)) = self.came.try_recv() {
            self.settle(id, at, page)?;
        }
        let taken = self.tiling.take();
        self.ask(store, runtime);
        Ok(taken.map(|(page, at, is_last)| (self.pass(page), at, is_last)))
    }

    fn settle(
        &mut self,
        id: u64,
        at: Instant,
        page: Result<Page, StoreError>,
    ) -> Result<(), StoreError> {
        let page = match page {
            Ok(page) => page,
            Err(_) if !self.tiling.failed(id) => return Ok(()),
            Err(error) => return Err(error),
        };
        if !self.tiling.came(id, page, at) {
            self.begin_anew();
        }
        Ok(())
    }

    /// The store sent keys that stand before `start-after`: it does not know that.
    fn begin_anew(&mut self) {
        self.passed = self.last.clone().max(self.start.after.clone());
        self.tiling = Tiling::new(Start::default()).plain();
        // What is still under way has no place any more.
        (self.sender, self.came) = unbounded_channel();
    }

    /// Without what was read before.
    fn pass(&mut self, mut page: Page) -> Page {
        if let Some(passed) = &self.passed {
            page.objects.retain(|(key, _)| key > passed);
            page.folders.retain(|key| key > passed);
        }
        let object = page.objects.last().map(|(key, _)| key);
        let last = object.max(page.folders.last()).cloned();
        self.last = last.or(self.last.take());
        page
    }

    fn ask(&mut self, store: &Arc<dyn Store>, runtime: &Handle) {
        while let Some(Ask { id, start, folder }) = self.tiling.ask() {
            let store = Arc::clone(store);
            let has_token = start.token.is_some();
            let request = ListRequest {
                token: start.token,
                start_after: start.after.filter(|_| !has_token),
                prefix: folder.unwrap_or_else(|| self.request.prefix.clone()),
                ..self.request.clone()
            };
            let sender = self.sender.clone();
            runtime.spawn(async move {
                let at = Instant::now();
                let page = store.list(&request).await;
                // Who asked may have gone.
                let _ = sender.send((id, at, page));
            });
        }
    }
}

/// Names of one page, with the moment at which it was asked for.
pub struct NamedPage {
    /// In the page's order.
    pub names: Vec<Named>,
    /// When the request was sent.
    pub at: Instant,
    /// It has the mount's own names, too: nothing stands behind it.
    pub has_own: bool,
    /// Where its first name stands in the whole listing.
    first: usize,
}

/// Where an open folder's listing stands.
pub struct Listing {
    prefix: String,
    /// The last pages that were read; earlier ones are let go.
    pages: VecDeque<NamedPage>,
    /// What is still to come.
    coming: Option<Pages>,
    /// When the first page was asked for.
    pub began: Instant,
    /// Names that were the mount's own, and that were given on no page: they stand at the end if
    /// they are there then.
    left: HashSet<Box<str>>,
    end: End,
}

/// What was done at a listing's end.
enum End {
    /// Nothing: perhaps its last page did not come yet.
    Open,
    /// The folder's facts are whole.
    Complete,
    /// Names of which the store has nothing stand behind the last page.
    HasOwn,
}

/// What a page brought beside its names.
pub struct Arrived {
    /// Keys that are no names.
    pub nameless: usize,
    /// Nothing comes after it.
    pub is_last: bool,
    /// What it says of the folder's attributes, and when it was asked for.
    pub attributes: Option<(Instant, Option<ObjectInfo>)>,
    /// It shows that folders are getting other names, where it is of the mount's own folder.
    pub shows_renames: bool,
}

impl Listing {
    /// Begins at the first name.
    pub fn new(prefix: String) -> Self {
        Self {
            coming: Some(Pages::new(prefix.clone(), true, Start::default())),
            prefix,
            pages: VecDeque::new(),
            began: Instant::now(),
            left: HashSet::new(),
            end: End::Open,
        }
    }

    /// Of names that are known already.
    pub fn known(prefix: String, mut names: Vec<Named>, at: Instant) -> Self {
        names.sort_by(|a, b| a.0.cmp(&b.0));
        let page = NamedPage {
            names,
            at,
            has_own: true,
            first: 0,
        };
        Self {
            prefix,
            pages: VecDeque::from([page]),
            coming: None,
            began: at,
            left: HashSet::new(),
            end: End::HasOwn,
        }
    }

    /// Whether nothing was asked of the store yet.
    pub fn is_unread(&self) -> bool {
        self.pages.is_empty()
    }

    /// Whether the name at `index` was let go: a reader went back, and the listing begins anew.
    pub fn is_behind(&self, index: usize) -> bool {
        self.pages.front().is_some_and(|page| index < page.first)
    }

    /// Whether it is too old to begin it once more.
    pub fn is_stale(&self, ttl: Duration) -> bool {
        !self.pages.is_empty() && self.began.elapsed() >= ttl
    }

    /// The page that has the name at `index`, and where in it.
    pub fn find(&self, index: usize) -> Option<(&NamedPage, usize)> {
        let page = self
            .pages
            .iter()
            .find(|page| (page.first..page.first + page.names.len()).contains(&index))?;
        Some((page, index - page.first))
    }

    /// Whether all pages were read.
    pub fn is_whole(&self) -> bool {
        self.coming.is_none()
    }

    /// Reads one page more.
    pub async fn advance(
        &mut self,
        store: &Arc<dyn Store>,
        runtime: &Handle,
    ) -> Result<Arrived, StoreError> {
        let next = match &mut self.coming {
            Some(coming) => coming.next(store, runtime).await?,
            None => None,
        };
        Ok(match next {
            Some((page, at, is_last)) => self.take(page, at, is_last),
            None => {
                self.coming = None;
                Arrived {
                    nameless: 0,
                    is_last: true,
                    attributes: None,
                    shows_renames: false,
                }
            }
        })
    }

    /// Reads one page more if it is here already: nothing is waited for.
    ///
    /// # Errors
    /// As above.
    pub fn advance_now(
        &mut self,
        store: &Arc<dyn Store>,
        runtime: &Handle,
    ) -> Result<Option<Arrived>, StoreError> {
        let Some(coming) = &mut self.coming else {
            return Ok(None);
        };
        let next = coming.next_now(store, runtime)?;
        Ok(next.map(|(page, at, is_last)| self.take(page, at, is_last)))
    }

    fn take(&mut self, page: Page, at: Instant, is_last: bool) -> Arrived {
        let (mut names, nameless) = names::of_page(&page, &self.prefix);
        // A folder hides the object of its name, which came on this page or on one before.
        names.sort_by(|a, b| {
            a.0.cmp(&b.0)
                .then((b.1 == Listed::Folder).cmp(&(a.1 == Listed::Folder)))
        });
        names.dedup_by(|b, a| a.0 == b.0);
        let first = self.end();
        let is_first = self.pages.is_empty();
        let attributes = names::attributes_of_page(&page, &self.prefix, is_first);
        let attributes = attributes.map(|object| (at, object));
        self.pages.push_back(NamedPage {
            names,
            at,
            has_own: false,
            first,
        });
        if self.pages.len() > 3 {
            self.pages.pop_front();
        }
        if is_last {
            self.coming = None;
        }
        Arrived {
            nameless,
            is_last,
            attributes,
            shows_renames: names::shows_renames(&page, &self.prefix),
        }
    }

    /// The folder's facts are whole. `own` are names of which the store has nothing yet.
    pub fn complete(&mut self, own: impl Iterator<Item = Box<str>>) {
        self.left.extend(own);
        self.end = End::Complete;
    }

    /// The name at `index` is the mount's own by now: it is given at the end, as it is then.
    pub fn leave(&mut self, index: usize) {
        if let Some((page, at)) = self.find(index) {
            let name = page.names[at].0.clone();
            self.left.insert(name);
        }
    }

    /// The name at `index` was given, so it is not given at the end.
    pub fn given(&mut self, index: usize) {
        if self.left.is_empty() {
            return;
        }
        if let Some((page, at)) = self.find(index) {
            let name = page.names[at].0.clone();
            self.left.remove(&name);
        }
    }

    /// The names that were left to the end.
    pub fn left(&self) -> &HashSet<Box<str>> {
        &self.left
    }

    /// Whether the folder's facts are not whole yet.
    pub fn is_open(&self) -> bool {
        matches!(self.end, End::Open)
    }

    /// Whether all names are here, also those of which the store has nothing.
    pub fn has_own(&self) -> bool {
        matches!(self.end, End::HasOwn)
    }

    /// Names of which the store had nothing yet at `at`, behind the last page.
    pub fn add_own(&mut self, mut names: Vec<Named>, at: Instant) {
        names.sort_by(|a, b| a.0.cmp(&b.0));
        let first = self.end();
        self.pages.push_back(NamedPage {
            names,
            at,
            has_own: true,
            first,
        });
        self.left.clear();
        self.end = End::HasOwn;
    }

    fn end(&self) -> usize {
        self.pages
            .back()
            .map_or(0, |last| last.first + last.names.len())
    }

    /// The page that came last.
    pub fn last(&self) -> Option<&NamedPage> {
        self.pages.back()
    }
}
