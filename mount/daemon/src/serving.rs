// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The life of a mount, from its first request to its end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fuser::{Config, MountOption, Session, SessionACL, SessionUnmounter};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use weft_files::locks::{LEASE, Locks};
use weft_files::shared::answers;
use weft_files::shared::owned_files::OPEN_OF_A_NODE;
use weft_files::staging::recovery::recover;
use weft_files::staging::stage::{Session as SessionMark, Stage};
use weft_files::staging::ways::Ways;
use weft_files::{BucketFiles, Job, JobStore, Settings, SharedFiles, Times, Writes};
use weft_s3::Bucket;
use weft_store::{ListRequest, Objects, Store};

use crate::filesystem::BucketFilesystem;
use crate::locking::Locking;
use crate::mount_error::MountError;
use crate::options::Options;
use crate::replies::Owner;
use crate::staging_threads::StagingThreads;
use crate::writers::Writers;
use crate::{background, filesystem, joining, log, mount_point, probing};

/// Chosen: after a signal open files may be closed for this long; then they break.
const END_LIMIT: Duration = Duration::from_secs(20);

/// Mounts, and returns when the mount has ended.
pub fn serve(options: &Options) -> Result<(), MountError> {
    let (bucket, prefix) = options.bucket_and_prefix()?;
    options.check_own_folders()?;
    let log = log_behind_shell(options)?;
    mount_point::check_fuse()?;
    let folder = mount_point::check(&options.directory)?;
    let runtime = Runtime::new().map_err(system("cannot start threads"))?;
    let store: Arc<dyn Store> = Arc::new(runtime.block_on(reach(options, &bucket, &prefix))?);
    let store = runtime.block_on(probing::made_careful(store, options, &prefix));
    let writes = stage(options, &runtime, &store, &format!("{bucket}/{prefix}"))?;
    let settings = Settings {
        prefix: prefix.clone(),
        ttl: options.metadata_ttl,
        cache_bytes: options.memory_target / 2,
        writes,
    };
    let shared = files(options, &bucket, &runtime, store, settings)?;
    let writers = Arc::new(Writers::default());
    let owner = Owner::new(&options.access);
    // One that could not join its job has no locks, rather than some that exclude nobody there.
    let locking = Locking::new(options.job.job_nodes.is_some(), runtime.handle().clone());
    let filesystem = BucketFilesystem::new(
        Arc::clone(&shared),
        runtime.handle().clone(),
        owner,
        Arc::clone(&writers),
        StagingThreads::of(options.max_threads),
        locking.clone(),
    );
    let config = mount_options(
        options,
        &format!("{}{bucket}/{prefix}", mount_point::SOURCE),
    );
    let mut session =
        Session::new(filesystem, &folder, &config).map_err(|error| MountError::Place {
            folder: folder.clone(),
            cause: format!("the kernel refused: {error}. Mount as root, or install fusermount3"),
        })?;
    let unmounter = session.unmount_callable();
    let _ = locking.notifier.set(session.notifier());
    let served = std::thread::spawn(move || session.run());
    mount_point::raise_read_ahead(&folder, filesystem::READ_AHEAD_BYTES);
    let end = End {
        unmounter,
        folder,
        shared: Arc::clone(&shared),
        writers: Arc::clone(&writers),
    };
    end_when_told(&runtime, end, options.held).map_err(system("cannot wait for signals"))?;
    if options.held {
        background::say_held().map_err(system("cannot say that the folder can be used"))?;
    }
    if let Some(log) = log {
        log::leave_shell(log);
        background::say_ready().map_err(system("cannot leave the shell"))?;
    }
    let ended = served.join();
    // The kernel does not say of every file that it is closed before it lets go of the mount.
    runtime.block_on(writers.publish_all(&shared));
    runtime.block_on(answers::settle(&shared, END_LIMIT));
    runtime.block_on(shared.files.settle_all(END_LIMIT));
    runtime.shutdown_timeout(Duration::from_secs(1));
    how_it_ended(ended)?;
    match writers.lost_in_words() {
        Some(lost) => Err(MountError::Lost(lost)),
        None => Ok(()),
    }
}

/// An error of the system as one of the mount.
fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> MountError {
    move |error| MountError::System { what, error }
}

/// What the thread that served the kernel says.
fn how_it_ended(ended: std::thread::Result<std::io::Result<()>>) -> Result<(), MountError> {
    match ended {
        Ok(result) => result.map_err(system("the connection to the kernel broke")),
        Err(_) => Err(MountError::Fuse(
            "a thread that served the kernel failed".to_owned(),
        )),
    }
}

/// Opened before anything is mounted.
fn log_behind_shell(options: &Options) -> Result<Option<log::Behind>, MountError> {
    if !background::is_child() {
        return Ok(None);
    }
    log::open(options.log_directory.as_deref()).map(Some)
}

/// The file layer over a store, with the disk cache and the job that options name.
fn files(
    options: &Options,
    bucket: &str,
    runtime: &Runtime,
    mut store: Arc<dyn Store>,
    mut settings: Settings,
) -> Result<Arc<SharedFiles>, MountError> {
    let joined = joining::join(&options.job, options.held)?;
    let (mut job_store, mut sharing) = (None, None);
    if let Some((neighbours, _)) = &joined {
        let job = Arc::new(Job::new(Arc::clone(neighbours), log::tell));
        settings.writes.is_shared = options.job.shared_writes;
        sharing = options.job.shared_writes.then(|| Arc::clone(&job));
        let mut shared = JobStore::new(store, job, options.metadata_ttl);
        if options.access.read_only {
            shared = shared.read_only();
        }
        let shared = Arc::new(shared);
        store = Arc::clone(&shared) as _;
        job_store = Some(shared);
    }
    let handle = runtime.handle().clone();
    let mut files = BucketFiles::new(store, handle, settings, log::tell);
    if let (Some(job_store), Some((neighbours, _))) = (job_store, &joined) {
        let locks = Locks::new(Arc::clone(neighbours), runtime.handle().clone(), LEASE);
        files = files.with_job(job_store).with_locks(locks);
    }
    if let Some(disk) = options.disk(bucket)? {
        files = files.with_disk(disk);
    }
    let files = Arc::new(files);
    if !options.access.read_only {
        files.finish_renames(Times::default());
    }
    let shared = SharedFiles::new(files, sharing, OPEN_OF_A_NODE);
    if let Some((_, asked)) = joined {
        answers::watch(&shared);
        joining::answer(runtime.handle(), Arc::clone(&shared), asked);
    }
    Ok(shared)
}

/// Connects, and has the bucket answer once.
async fn reach(options: &Options, bucket: &str, prefix: &str) -> Result<Bucket, MountError> {
    let store = weft_s3::connect(&options.store(bucket.to_owned())).await;
    let request = ListRequest {
        prefix: prefix.to_owned(),
        by_folder: true,
        limit: 1,
        ..ListRequest::default()
    };
    match store.list(&request).await {
        Ok(_) => Ok(store),
        Err(error) => {
            let address = options.reach.address();
            Err(MountError::of_bucket(bucket, address.as_deref(), &error))
        }
    }
}

/// The folder for what is written, after what a dead mount left there was looked after.
fn stage(
    options: &Options,
    runtime: &Runtime,
    store: &Arc<dyn Store>,
    place: &str,
) -> Result<Writes, MountError> {
    let endpoint = options.reach.address().unwrap_or_default();
    let session = SessionMark {
        version: 1,
        place: format!("{endpoint} {place}"),
        folder: options.directory.clone(),
        process: std::process::id(),
    };
    let folder = options.writes.stage_folder();
    let refused = |error| MountError::Stage {
        folder: folder.clone(),
        error,
    };
    let limit_bytes = options.writes.stage_limit;
    let stage = Stage::open(&folder, limit_bytes, &session).map_err(refused)?;
    let stage = Arc::new(stage);
    let sending_bytes = options.memory_target / 4;
    if !options.access.read_only {
        let ways = Ways::new(Arc::clone(store), runtime.handle().clone(), sending_bytes);
        let recovered = recover(&ways, &stage, &session.place, log::tell);
        runtime.block_on(recovered).map_err(refused)?;
    }
    Ok(Writes {
        stage,
        publish: options.writes.publish(),
        sending_bytes,
        attributes_after: Writes::ATTRIBUTES_AFTER,
        is_shared: false,
    })
}

fn mount_options(options: &Options, source: &str) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(source.to_owned()),
        MountOption::DefaultPermissions,
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::NoAtime,
    ];
    if options.access.read_only {
        config.mount_options.push(MountOption::RO);
    }
    config.acl = match (options.access.allow_other, options.access.allow_root) {
        (true, _) => SessionACL::All,
        (_, true) => SessionACL::RootAndOwner,
        _ => SessionACL::Owner,
    };
    config.n_threads = Some(usize::from(options.max_threads));
    config.clone_fd = true;
    config
}

/// What ends a mount, and what must be done before it may.
struct End {
    unmounter: SessionUnmounter,
    folder: PathBuf,
    shared: Arc<SharedFiles>,
    writers: Arc<Writers>,
}

impl End {
    /// While files are open the folder is empty at once, and they may be used for a while.
    async fn come(self) {
        let Self {
            mut unmounter,
            folder,
            shared,
            writers,
        } = self;
        let unmounted = tokio::task::spawn_blocking(move || unmounter.unmount()).await;
        if !matches!(unmounted, Ok(Ok(()))) {
            detach(&folder);
        }
        tokio::time::sleep(END_LIMIT).await;
        writers.publish_all(&shared).await;
        answers::settle(&shared, Duration::ZERO).await;
        shared.files.settle_all(END_LIMIT).await;
        log::tell("files were still open when the mount ended; what was written is published");
        if let Some(lost) = writers.lost_in_words() {
            log::tell(&MountError::Lost(lost).to_string());
        }
        std::process::exit(1);
    }
}

/// SIGTERM, SIGINT and SIGHUP unmount. A mount that is held is unmounted when its standard input
/// ends, and not by what is sent to the job that it belongs to.
fn end_when_told(runtime: &Runtime, end: End, is_held: bool) -> std::io::Result<()> {
    let _context = runtime.enter();
    let (sender, mut asked) = tokio::sync::mpsc::channel(1);
    let kinds = [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ];
    for kind in kinds {
        let (mut signal, sender) = (signal(kind)?, sender.clone());
        runtime.spawn(async move {
            while signal.recv().await.is_some() {
                if !is_held {
                    let _ = sender.send(()).await;
                }
            }
        });
    }
    if is_held {
        std::thread::Builder::new()
            .name("standard input".to_owned())
            .spawn(move || {
                let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
                let _ = sender.blocking_send(());
            })?;
    }
    runtime.spawn(async move {
        asked.recv().await;
        end.come().await;
    });
    Ok(())
}

fn detach(folder: &Path) {
    let detached = nix::mount::umount2(folder, nix::mount::MntFlags::MNT_DETACH);
    if let Err(error) = detached {
        log::tell(&format!("cannot unmount {}: {error}", folder.display()));
    }
}
