// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Listens, and gives each connection to the HTTP library.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::dispatch;
use crate::state::{Options, State};
use crate::wire::{ResetFlag, Wire};

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Starts a server. Runs on the tokio runtime of the caller.
    ///
    /// # Errors
    /// Where the address cannot be listened on.
    pub async fn start(options: Options) -> io::Result<Self> {
        let listener = TcpListener::bind(&options.listen).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(State::new(options));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&state)));
        Ok(Self {
            address,
            state,
            accepting,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What clients call the endpoint.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its faults, counters and store.
    pub fn state(&self) -> &State {
        &self.state
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    loop {
        // Out of descriptors, or a peer that is gone already: the next one may do better.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        tokio::spawn(connection(stream, Arc::clone(&state)));
    }
}

async fn connection(stream: TcpStream, state: Arc<State>) {
    let reset = ResetFlag::default();
    let wire = Wire::new(
        stream,
        Arc::clone(&state.faults),
        Arc::clone(&state.total),
        reset.clone(),
    );
    let service = service_fn(|request| dispatch::serve(Arc::clone(&state), reset.clone(), request));
    // Errors are those of the peer, or were asked for: the connection is over in any case.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(wire), service)
        .await;
}
