// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What other nodes ask of the files that this node has for all: docs/job-cache.md, clause 5.
//! `mount/daemon` hands every question of a job here; questions of other kinds go on to
//! [`crate::BucketFiles::answer`].

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use weft_store::ObjectInfo;

use crate::attribute_object::Time;
use crate::attributes::Making;
use crate::changes::Name;
use crate::draft::Written;
use crate::fault::{Fault, Reason};
use crate::job::{ELSE, Job, refusal};
use crate::mode::Mode;
use crate::names::{self, Listed};
use crate::nodes::{self, ROOT};
use crate::shared::folder_moves;
use crate::shared::messages::{self, Ask, ByName, Call, FOLLOWS, FileAt, NOT_YET, Seen};
use crate::shared::owned_files::OwnedFile;
use crate::shared::shared_files::SharedFiles;
use crate::shared::shared_names;
use crate::shared::shared_times;

/// Specified (5.4): how long an answer waits for a call that takes long.
const WAIT: Duration = Duration::from_secs(5);
/// Specified (5.6): between two questions whether a node still has its files open.
const HELD_PAUSE: Duration = Duration::from_secs(5);
/// Specified (5.6): a file that was opened later may not be known to its node yet.
const NEW: Duration = Duration::from_secs(30);
/// Chosen: between two looks at what other nodes have open, at the end of the mount.
const END_PAUSE: Duration = Duration::from_millis(20);

/// The answer to what the mount of another node of the job asks, in two parts.
pub async fn answer(shared: &Arc<SharedFiles>, node: usize, question: Bytes) -> [Bytes; 2] {
    if !messages::is_shared(&question) {
        return shared.files.answer(node, question).await;
    }
    let answered = match Ask::read(question) {
        None => return refusal(ELSE, "the question is not understood"),
        Some(ask) if shared.others.job.is_none() && !ask.is_of_names() => {
            return refusal(ELSE, "files are not shared here");
        }
        Some(Ask::Name {
            node: named,
            what,
            key,
        }) => match by_name(shared, node, named, what, &key).await {
            Err(fault) if what == ByName::Look && fault.reason == Reason::NotFound => {
                return [not_made(shared, &key), Bytes::new()];
            }
            answered => answered,
        },
        Some(Ask::Read { file, offset, size }) => match shared.owned.get(node, file) {
            Ok(file) => {
                let read = shared.files.open_files.read(file.handle, offset, size);
                read.await
            }
            Err(fault) => Err(fault),
        },
        Some(Ask::Held { session, numbers }) => Ok(not_held(shared, session, &numbers)),
        Some(ask) => match on_file(shared, node, ask).await {
            Ok(Some(answer)) => return [answer, Bytes::new()],
            Ok(None) => return [Bytes::from_static(&[NOT_YET]), Bytes::new()],
            Err(fault) => Err(fault),
        },
    };
    match answered {
        Ok(bytes) => [Bytes::from_static(&[FOLLOWS]), bytes],
        Err(fault) => [messages::refused(&fault), Bytes::new()],
    }
}

/// Writes and calls, whose answer may come later; nothing where it does.
async fn on_file(shared: &Arc<SharedFiles>, node: usize, ask: Ask) -> Result<Option<Bytes>, Fault> {
    let (at, number) = match &ask {
        Ask::Write { file, number, .. } | Ask::Call { file, number, .. } => (*file, *number),
        _ => return Err(Reason::Invalid.into()),
    };
    let file = shared.owned.get(node, at)?;
    if let Ask::Write { offset, data, .. } = &ask {
        let offset = offset.unwrap_or_default();
        match shared.write_now(file.handle, offset, data) {
            Some(Ok(Written::Done)) => return Ok(Some(Bytes::from_static(&[FOLLOWS]))),
            Some(Err(fault)) => return Err(fault),
            // A part is to be sent, which need not be waited for here.
            Some(Ok(Written::MustSend)) => {
                let shared = Arc::clone(shared);
                shared.core().runtime.clone().spawn(async move {
                    let _ = crate::send_ready(&shared.files.open_files, file.handle).await;
                });
                return Ok(Some(Bytes::from_static(&[FOLLOWS])));
            }
            None => {}
        }
    }
    let is_wait = matches!(
        ask,
        Ask::Call {
            call: Call::Wait,
            ..
        }
    );
    if !is_wait {
        let ended = file.begin(number);
        let (shared, file) = (Arc::clone(shared), Arc::clone(&file));
        shared.core().runtime.clone().spawn(async move {
            let answer = match done(&shared, &file, ask).await {
                Ok(words) => [&[FOLLOWS], &*words].concat().into(),
                Err(fault) => messages::refused(&fault),
            };
            let _ = ended.send(Some(answer));
        });
    }
    let answer = file.end(number, WAIT).await?;
    if answer.is_some() {
        shared.owned.take_closed(at);
    }
    Ok(answer)
}

/// Does a write or a call, however long it takes.
async fn done(shared: &SharedFiles, file: &OwnedFile, ask: Ask) -> Result<Bytes, Fault> {
    let call = match ask {
        Ask::Write { offset, data, .. } => {
            let offset = offset.unwrap_or_default();
            shared.write(file.handle, offset, data).await?;
            return Ok(Bytes::new());
        }
        Ask::Call { call, .. } => call,
        _ => return Err(Reason::Invalid.into()),
    };
    match call {
        Call::Flush => shared.flush(file.handle, 0).await?,
        Call::Sync => shared.publish(file.handle).await?,
        Call::Resize(size) => shared.resize(file.ino, Some(file.handle), size).await?,
        Call::Close => return close(shared, file).await,
        Call::SetTime(at) => shared_times::set_here(shared, file.ino, at).await?,
        Call::Look | Call::Wait => {}
    }
    let seen = seen(shared, file.ino).ok_or(Reason::Stale)?;
    Ok(seen_as_bytes(&seen))
}

/// Closes the file of another node; what it is like then.
async fn close(shared: &SharedFiles, file: &OwnedFile) -> Result<Bytes, Fault> {
    file.close();
    let closed = shared.close_here(file.handle).await;
    let seen = seen(shared, file.ino).ok_or(Reason::Stale);
    if let Ok(seen) = seen.as_ref()
        && !seen.is_draft
    {
        note_published(shared, file, &seen.info);
    }
    shared.files.forget(file.ino, 1);
    closed?;
    Ok(seen_as_bytes(&seen?))
}

/// Notes what a file that was closed is like, by the name that it has now: its folder may have
/// another one than when the file was opened.
fn note_published(shared: &SharedFiles, file: &OwnedFile, info: &ObjectInfo) {
    let Ok(key) = shared.core().key(file.ino) else {
        return;
    };
    shared.owned.note_published(&key, info.clone());
    // Who unlinks or renames it meanwhile forgets the name after that.
    let is_same = shared.core().key(file.ino).is_ok_and(|now| now == key);
    if !is_same || is_gone(shared, file.ino) {
        shared.owned.forget(&key);
    }
}

/// Whether the name of a file is gone.
fn is_gone(shared: &SharedFiles, ino: u64) -> bool {
    let mut nodes = shared.core().nodes();
    nodes.file(ino).is_none_or(|file| file.is_gone)
}

fn seen_as_bytes(seen: &Seen) -> Bytes {
    let mut to = BytesMut::new();
    messages::put_seen(&mut to, seen);
    to.freeze()
}

/// What this node knows of a file.
fn seen(shared: &SharedFiles, ino: u64) -> Option<Seen> {
    let is_draft = shared.files.open_files.draft(ino).is_some() || {
        let mut nodes = shared.core().nodes();
        let file = nodes.file(ino)?;
        // Of what has no name nobody learns what the store has.
        file.is_gone || !file.is_written_here
    };
    shared_times::seen(shared, ino, is_draft)
}

async fn by_name(
    shared: &Arc<SharedFiles>,
    node: usize,
    named: u64,
    what: ByName,
    key: &str,
) -> Result<Bytes, Fault> {
    checked_node(shared, node, named)?;
    let (folders, name) = split(shared, key)?;
    match what {
        // What is not published is for this node alone where files are not shared.
        ByName::Look if shared.others.job.is_none() => Err(Reason::NotFound.into()),
        ByName::Look => look(shared, key).ok_or(Reason::NotFound.into()),
        ByName::Made => {
            if let Some(store) = &shared.files.job_store {
                store.new_names.note(key);
            }
            Ok(Bytes::new())
        }
        ByName::Moves => {
            let path = key.strip_prefix(&*shared.core().settings.prefix);
            folder_moves::write_before(shared.core(), path.unwrap_or(key)).await
        }
        ByName::Changes => {
            let parent = parent(shared, folders)?;
            changes(shared, Name { parent, name }, key)
        }
        ByName::SetTime(at) => {
            let parent = parent(shared, folders)?;
            set_time(shared, Name { parent, name }, at).await?;
            look(shared, key).ok_or(Reason::NotFound.into())
        }
        ByName::Unlink => {
            let parent = parent(shared, folders)?;
            shared_names::unlink_here(shared, Name { parent, name }, key).await?;
            Ok(Bytes::new())
        }
        ByName::Open { mode, creates } => {
            // What arrives at the same time may pass the limit by as many as a node asks at once.
            shared.owned.check_room(node)?;
            let parent = parent(shared, folders)?;
            let new = Name { parent, name };
            let (ino, opened) = open(shared, new, mode, creates).await?;
            let seen = seen(shared, ino).ok_or(Reason::Stale)?;
            let is_new = seen.info.etag.as_str().is_empty();
            let file = OwnedFile::new(node, opened, ino, key.to_owned());
            let mut to = BytesMut::new();
            messages::put_file(&mut to, shared.owned.add(file));
            to.put_u8(u8::from(is_new));
            messages::put_seen(&mut to, &seen);
            Ok(to.freeze())
        }
    }
}

/// A rename of another node is about to change a name, or has changed it.
fn changes(shared: &SharedFiles, at: Name<'_>, key: &str) -> Result<Bytes, Fault> {
    shared_names::changes_here(shared, key)?;
    if let Some(folder) = shared.core().nodes().folder(at.parent) {
        folder.forget(at.name);
    }
    if let Some(store) = &shared.files.job_store {
        store.note_change();
    }
    let mut to = BytesMut::new();
    messages::put_modified(&mut to, shared_times::take(shared, at).as_ref());
    Ok(to.freeze())
}

/// A program of another node sets the time of a name's content; nothing if nobody writes it.
async fn set_time(shared: &SharedFiles, of: Name<'_>, at: Time) -> Result<(), Fault> {
    let ino = shared.core().nodes().find(of.parent, of.name);
    let is_draft = |ino: &u64| shared.files.open_files.draft(*ino).is_some();
    match ino.filter(is_draft) {
        Some(ino) => shared_times::set_here(shared, ino, at).await,
        None => Ok(()),
    }
}

/// Whether the node that asks is the one that the message names.
fn checked_node(shared: &SharedFiles, node: usize, named: u64) -> Result<(), Fault> {
    if named == node as u64 {
        return Ok(());
    }
    let store = shared.files.job_store.as_ref();
    let count = store.map_or(0, |store| store.job.node_count());
    let text = format!(
        "node {node} of the job asks in the name of node {named}; the job has {count} nodes, from \
         0 on"
    );
    Err(Fault::because(Reason::Invalid, text))
}

/// Opens a file for another node: its node here, and its handle.
async fn open(
    shared: &SharedFiles,
    at: Name<'_>,
    mode: Mode,
    creates: bool,
) -> Result<(u64, u64), Fault> {
    if creates {
        let (entry, opened) = shared.create_here(at, mode, &Making::FOR_OTHER).await?;
        return Ok((entry.attributes.ino, opened.opened.handle));
    }
    let entry = shared.files.lookup(at.parent, at.name).await?;
    let ino = entry.attributes.ino;
    match shared.open_here(ino, mode).await {
        Ok(opened) => Ok((ino, opened.opened.handle)),
        Err(fault) => {
            shared.files.forget(ino, 1);
            Err(fault)
        }
    }
}

/// What is known of a key that this node owns, if that is more than the store knows.
fn look(shared: &SharedFiles, key: &str) -> Option<Bytes> {
    let core = shared.core();
    let path = key.strip_prefix(&*core.settings.prefix)?;
    let ino = nodes::find_path(&core.nodes(), path);
    let age = core.settings.ttl.saturating_mul(2).max(NEW);
    let of_node = ino.and_then(|ino| {
        let is_draft = shared.files.open_files.draft(ino).is_some();
        let is_own = {
            let mut nodes = core.nodes();
            let file = nodes.file(ino)?;
            file.is_written_here && !file.is_lost && file.at.elapsed() <= age
        };
        let is_known = is_draft || is_own;
        is_known.then(|| shared_times::seen(shared, ino, is_draft))?
    });
    let published = || {
        let info = shared.owned.published(key, age)?;
        Some(Seen {
            is_draft: false,
            info,
        })
    };
    Some(seen_as_bytes(&of_node.or_else(published)?))
}

/// The answer that this node knows of no more than the store, and since when it would.
fn not_made(shared: &SharedFiles, key: &str) -> Bytes {
    let store = shared.files.job_store.as_ref();
    let made_at = store.map(|store| store.new_names.made_at(key));
    messages::not_made(made_at.map_or(Duration::ZERO, |at| at.elapsed()))
}

/// A key as the folders that its file lies in, and its name.
fn split<'a>(shared: &SharedFiles, key: &'a str) -> Result<(&'a str, &'a str), Fault> {
    let path = key.strip_prefix(&*shared.core().settings.prefix);
    let path = path.ok_or(Reason::Invalid)?;
    if let Err(reason) = names::check_key(key) {
        let text = format!(
            "another mount of the job names a key of {} bytes; no store takes more than {}",
            key.len(),
            names::KEY_BYTES
        );
        return Err(Fault::because(reason, text));
    }
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    names::check(name)?;
    Ok((folders, name))
}

/// The node of a folder: the node that asks knows that its parts are folders.
fn parent(shared: &SharedFiles, folders: &str) -> Result<u64, Fault> {
    let mut parent = ROOT;
    for name in folders.split('/').filter(|name| !name.is_empty()) {
        names::check(name)?;
        let core = shared.core();
        let known = {
            let mut nodes = core.nodes();
            let known = nodes.find(parent, name);
            known.filter(|ino| nodes.folder(*ino).is_some())
        };
        let enter = || core.enter(parent, name, &Listed::Folder, Instant::now());
        parent = known.unwrap_or_else(|| enter().attributes.ino);
    }
    Ok(parent)
}

/// The numbers of files of another node's that this node has not open.
fn not_held(shared: &SharedFiles, session: u64, numbers: &[u64]) -> Bytes {
    let open = shared.remote.all();
    let is_held = |number: &&u64| {
        let number = **number;
        let at = FileAt { session, number };
        open.iter().any(|file| file.place.file == at)
    };
    let gone: Vec<u64> = numbers
        .iter()
        .filter(|one| !is_held(one))
        .copied()
        .collect();
    let mut to = BytesMut::new();
    messages::put_numbers(&mut to, &gone);
    to.freeze()
}

/// Closes the files of nodes that are gone, as long as the mount lives.
pub fn watch(shared: &Arc<SharedFiles>) {
    let (weak, runtime) = (Arc::downgrade(shared), shared.core().runtime.clone());
    runtime.spawn(async move {
        loop {
            tokio::time::sleep(HELD_PAUSE).await;
            let Some(()) = close_those_gone(&weak).await else {
                return;
            };
        }
    });
}

/// Nothing where the mount has ended.
async fn close_those_gone(shared: &Weak<SharedFiles>) -> Option<()> {
    let shared = shared.upgrade()?;
    let job = Arc::clone(shared.others.job.as_ref()?);
    for (node, numbers) in shared.owned.by_node() {
        close_of(&shared, &job, node, numbers).await;
    }
    Some(())
}

/// Closes what a node has open here no more.
pub(crate) async fn close_of(shared: &SharedFiles, job: &Arc<Job>, node: usize, numbers: Vec<u64>) {
    let session = shared.owned.session();
    let question = Ask::Held { session, numbers }.write();
    let closed = match job.ask_node(node, question).await {
        Err(_) => shared.owned.drop_of(node, |_, _| true),
        Ok(answer) => {
            let gone = messages::answered(answer).ok().flatten();
            let gone = gone.and_then(|mut answer| messages::numbers(&mut answer));
            let gone = gone.unwrap_or_default();
            let is_old = |file: &OwnedFile| file.since.elapsed() > NEW;
            let is_gone = |number, file: &OwnedFile| gone.contains(&number) && is_old(file);
            shared.owned.drop_of(node, is_gone)
        }
    };
    close_for(shared, node, closed, "is gone").await;
}

/// Closes files for a node that does not do so any more; `why` says why it does not.
async fn close_for(shared: &SharedFiles, node: usize, files: Vec<Arc<OwnedFile>>, why: &str) {
    for file in files {
        shared.core().tell(&format!(
            "node {node} of the job {why}; `{}`, which it had open, is closed for it",
            file.key
        ));
        if let Err(fault) = close(shared, &file).await {
            let text = format!("`{}` was not published: {fault}", file.key);
            shared.core().tell(&text);
        }
    }
}

/// Waits until the other nodes have closed their files, or are gone, at the end of the mount. What
/// they still have open after `limit` is closed for them, and so published; their later calls fail.
pub async fn settle(shared: &SharedFiles, limit: Duration) {
    let began = Instant::now();
    while !shared.owned.by_node().is_empty() && began.elapsed() < limit {
        tokio::time::sleep(END_PAUSE).await;
    }
    for node in shared.owned.by_node().into_keys() {
        let files = shared.owned.drop_of(node, |_, _| true);
        let why = "did not close its files before this mount ended";
        close_for(shared, node, files, why).await;
    }
}
