// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds a name in the store with as few requests as possible, and with none if the name is known.
//!
//! The first name that is asked for in a folder makes the mount list the folder's first page. Most
//! folders have only one page; then every other name costs no request, even one that does not
//! exist. In a larger folder a name costs one LIST, since the object `a/b` and the folder `a/b/`
//! both begin with `a/b`. If a program asks for many names there, as tar does that unpacks into it,
//! the mount lists the whole folder again, several pages at a time.

use std::time::{Duration, Instant};

use weft_store::{ListRequest, Page, StoreError};

use crate::attribute_sync;
use crate::core::Core;
use crate::facts::{Fact, Shown};
use crate::fault::{Fault, Reason};
use crate::listing::Pages;
use crate::names::{self, Listed, PAGE_KEYS};
use crate::nodes::Body;
use crate::tiling::Start;

/// Chosen: names that begin alike (`a`, `a.txt`, `a-1`) and stand between an object and its folder.
const NEIGHBOURS: u16 = 16;

/// What a name stands for, and since when that is known.
pub type Found = (Listed, Instant);

/// What `name` stands for in the folder `parent`, whose attributes are known then.
pub async fn search(core: &Core, parent: u64, name: &str) -> Result<Found, Fault> {
    let found = search_objects(core, parent, name).await;
    match &found {
        Err(fault) if fault.reason != Reason::NotFound => return found,
        _ => attribute_sync::ensure(core, parent).await?,
    }
    // What is no object is known since just now.
    match attribute_sync::special(core, parent, name) {
        Some(special) => Ok((special, Instant::now())),
        None => found,
    }
}

async fn search_objects(core: &Core, parent: u64, name: &str) -> Result<Found, Fault> {
    if let Some(known) = known(core, parent, name)? {
        return known;
    }
    let (prefix, is_large) = folder_state(core, parent)?;
    if let Some(found) = refresh(core, parent, name).await? {
        return Ok(found);
    }
    if !is_large {
        // Whoever comes meanwhile waits for the same page, and asks nothing.
        let _turn = core.listing_turns.take(parent).await;
        if let Some(known) = known(core, parent, name)? {
            return known;
        }
        list_first_page(core, parent, &prefix).await?;
        if let Some(known) = known(core, parent, name)? {
            return known;
        }
    } else if let Some(pages) = pages_for(core, parent) {
        let _turn = core.listing_turns.take(parent).await;
        if let Some(known) = known(core, parent, name)? {
            return known;
        }
        list_whole(core, parent, &prefix, pages).await?;
        if let Some(known) = known(core, parent, name)? {
            return known;
        }
    }
    ask_for_name(core, parent, &prefix, name).await
}

/// The same where there may be nothing.
pub async fn find(core: &Core, parent: u64, name: &str) -> Result<Option<Found>, Fault> {
    match search(core, parent, name).await {
        Ok(found) => Ok(Some(found)),
        Err(fault) if fault.reason == Reason::NotFound => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// What is known, with an error where nothing has the name.
fn known(core: &Core, parent: u64, name: &str) -> Result<Option<Result<Found, Fault>>, Fault> {
    let mut nodes = core.nodes();
    let folder = nodes.folder(parent).ok_or(Reason::NotFolder)?;
    Ok(match folder.known(name, core.settings.ttl) {
        Some((Some(listed), at)) => Some(Ok((listed, at))),
        Some((None, _)) => Some(Err(Reason::NotFound.into())),
        None => None,
    })
}

/// When that was asked for which shows that nothing has the name, if it is believed.
pub fn missing_at(core: &Core, parent: u64, name: &str) -> Option<Instant> {
    let mut nodes = core.nodes();
    let (listed, at) = nodes.folder(parent)?.known(name, core.settings.ttl)?;
    listed.is_none().then_some(at)
}

fn folder_state(core: &Core, ino: u64) -> Result<(String, bool), Fault> {
    let prefix = core.key(ino)?;
    let mut nodes = core.nodes();
    let folder = nodes.folder(ino).ok_or(Reason::NotFolder)?;
    Ok((prefix, folder.is_large))
}

/// A file that the kernel holds is asked for by its key alone, which is the cheapest request.
async fn refresh(core: &Core, parent: u64, name: &str) -> Result<Option<Found>, Fault> {
    let key = {
        let nodes = core.nodes();
        let node = nodes.find(parent, name).and_then(|ino| nodes.get(ino));
        match node.map(|node| &node.body) {
            Some(Body::File(_)) => {}
            _ => return Ok(None),
        }
        drop(nodes);
        format!("{}{name}", core.key(parent)?)
    };
    let at = Instant::now();
    let Some(info) = core.store.find(&key).await? else {
        return Ok(None);
    };
    let listed = Listed::File(info);
    core.learn(parent, name, at, Some(listed.clone()));
    Ok(Some((listed, at)))
}

/// How many pages a listing of a large folder may take, if it is worth it.
fn pages_for(core: &Core, parent: u64) -> Option<usize> {
    let ttl = core.settings.ttl;
    core.nodes().folder(parent)?.asked_alone.pages_for(ttl)
}

/// Lists a large folder, unless it has more than `most` pages.
async fn list_whole(core: &Core, parent: u64, prefix: &str, most: usize) -> Result<(), StoreError> {
    let began = Instant::now();
    let mut pages = Pages::new(prefix.to_owned(), true, Start::default());
    let mut names = 0;
    for number in 0..most {
        let Some((page, at, is_last)) = pages.next(&core.store, &core.runtime).await? else {
            break;
        };
        let is_first = number == 0;
        names += learn_page(
            core,
            parent,
            prefix,
            Asked {
                page: &page,
                at,
                is_first,
            },
        );
        let mut nodes = core.nodes();
        let Some(folder) = nodes.folder(parent) else {
            return Ok(());
        };
        if is_last {
            folder.complete(began);
            folder.is_large = number > 0;
            folder.asked_alone.is_slow = began.elapsed() > core.settings.ttl / 2;
            return Ok(());
        }
    }
    if let Some(folder) = core.nodes().folder(parent) {
        folder.asked_alone.listed(names);
    }
    Ok(())
}

/// A page of a folder's listing.
struct Asked<'a> {
    page: &'a Page,
    /// When it was asked for.
    at: Instant,
    is_first: bool,
}

/// Takes what a page says of a folder; how many names it has.
fn learn_page(core: &Core, parent: u64, prefix: &str, asked: Asked<'_>) -> usize {
    let Asked { page, at, is_first } = asked;
    let (found, nameless) = names::of_page(page, prefix);
    core.tell_nameless(prefix, nameless);
    if *prefix == core.settings.prefix && names::shows_renames(page, prefix) {
        core.renames.notice();
    }
    if let Some(object) = names::attributes_of_page(page, prefix, is_first) {
        attribute_sync::note_seen(core, parent, at, object);
    }
    let count = found.len();
    if let Some(folder) = core.nodes().folder(parent) {
        for (name, listed) in found {
            let listed = Some(listed);
            folder.learn(&name, Fact { at, listed }, Shown::OnPage);
        }
    }
    count
}

async fn list_first_page(core: &Core, parent: u64, prefix: &str) -> Result<(), StoreError> {
    let at = Instant::now();
    let request = ListRequest {
        prefix: prefix.to_owned(),
        by_folder: true,
        limit: PAGE_KEYS,
        ..ListRequest::default()
    };
    let page = core.store.list(&request).await?;
    learn_page(
        core,
        parent,
        prefix,
        Asked {
            page: &page,
            at,
            is_first: true,
        },
    );
    if let Some(folder) = core.nodes().folder(parent) {
        folder.is_large = page.next.is_some();
        if page.next.is_none() {
            folder.complete(at);
        }
    }
    Ok(())
}

async fn ask_for_name(core: &Core, parent: u64, prefix: &str, name: &str) -> Result<Found, Fault> {
    let at = Instant::now();
    let mut request = ListRequest {
        prefix: format!("{prefix}{name}"),
        by_folder: true,
        limit: NEIGHBOURS,
        ..ListRequest::default()
    };
    let page = core.store.list(&request).await?;
    let (found, _) = names::of_page(&page, prefix);
    let mut listed = None;
    for (other, what) in found {
        if *other == *name && (listed.is_none() || what == Listed::Folder) {
            listed = Some(what);
        }
    }
    if listed.is_none() && page.next.is_some() {
        request.prefix.push('/');
        request.limit = 1;
        let page = core.store.list(&request).await?;
        if !page.objects.is_empty() || !page.folders.is_empty() {
            listed = Some(Listed::Folder);
        }
    }
    core.learn(parent, name, at, listed.clone());
    match listed {
        Some(listed) => Ok((listed, at)),
        None => Err(Reason::NotFound.into()),
    }
}

/// Asks for a file whose object was moved with its folder, whoever writes it.
pub async fn look_again(core: &Core, ino: u64) -> Result<(), Fault> {
    let key = core.key(ino)?;
    let at = Instant::now();
    let info = core.store.head(&key).await?;
    if let Some(file) = core.nodes().file(ino) {
        let before = std::mem::replace(&mut file.info, info);
        if file.is_draft {
            // A copy is newer than what was written into it.
            file.info.size_bytes = before.size_bytes;
            file.info.modified = before.modified;
        }
        file.at = at;
    }
    Ok(())
}

/// Whether a program is reading a listing that showed a file. What is opened is asked for all the
/// same.
pub fn is_listed(core: &Core, ino: u64) -> bool {
    let mut nodes = core.nodes();
    let Some(node) = nodes.get(ino) else {
        return false;
    };
    let at = match &node.body {
        Body::File(file) if !file.is_lost => file.at,
        _ => return false,
    };
    let parent = node.parent;
    nodes
        .folder(parent)
        .is_some_and(|folder| folder.is_believed(at, Duration::ZERO))
}

/// Asks for a file that was last seen longer than `ttl` ago.
pub async fn freshen(core: &Core, ino: u64, ttl: Duration) -> Result<(), Fault> {
    let key = {
        let mut nodes = core.nodes();
        match &mut nodes.get_mut(ino).ok_or(Reason::Stale)?.body {
            Body::File(file) if file.is_gone || file.is_draft => return Ok(()),
            Body::File(file) if (file.is_lost || file.at.elapsed() >= ttl) => {}
            _ => return Ok(()),
        }
        drop(nodes);
        core.key(ino)?
    };
    let at = Instant::now();
    let info = core.store.head(&key).await?;
    let mut nodes = core.nodes();
    if let Some(file) = nodes.file(ino)
        && file.at <= at
        && !file.is_draft
        && !file.is_gone
    {
        file.see(&info, at);
        file.is_lost = false;
    }
    Ok(())
}
