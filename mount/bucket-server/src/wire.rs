// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A connection that limits its rates, and that can end with a reset. It is between the socket and
//! the HTTP library.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use crate::fault::FaultControl;
use crate::pace::Pace;

/// Chosen: a limited connection moves at most so many bytes between two looks at the clock.
const STEP_BYTES: usize = 128 << 10;

/// Chosen: shorter waits are left to the next look, since timers are good to a millisecond.
const WORTH_WAITING: Duration = Duration::from_millis(1);

/// The clocks of both directions over all connections, and what went over them.
#[derive(Debug)]
pub struct Total {
    sent: Mutex<Meter>,
    received: Mutex<Meter>,
}

#[derive(Debug)]
struct Meter {
    pace: Pace,
    bytes: u64,
}

impl Total {
    /// Both directions are free.
    pub fn new() -> Self {
        let meter = || {
            Mutex::new(Meter {
                pace: Pace::new(Instant::now()),
                bytes: 0,
            })
        };
        Self {
            sent: meter(),
            received: meter(),
        }
    }

    /// The bytes that all sockets have taken since the start, heads of answers included.
    pub fn sent_bytes(&self) -> u64 {
        crate::locked(&self.sent).bytes
    }
}

/// Says that the connection is to end with a reset.
#[derive(Clone, Debug, Default)]
pub struct ResetFlag(Arc<Mutex<bool>>);

impl ResetFlag {
    /// From now on closing it resets it.
    pub fn set(&self) {
        *crate::locked(&self.0) = true;
    }
}

/// One limited direction of a connection.
struct Direction {
    own: Pace,
    wait: Option<Pin<Box<Sleep>>>,
}

impl Direction {
    fn new() -> Self {
        Self {
            own: Pace::new(Instant::now()),
            wait: None,
        }
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(wait) = &mut self.wait {
            ready!(wait.as_mut().poll(context));
            self.wait = None;
        }
        Poll::Ready(())
    }

    /// So many bytes have moved: how long until the next may?
    fn spend(&mut self, bytes: usize, rates: (u64, u64), total: &Mutex<Meter>) {
        let now = Instant::now();
        let own = self.own.spend(bytes, rates.0, now);
        let mut total = crate::locked(total);
        total.bytes += bytes as u64;
        let all = total.pace.spend(bytes, rates.1, now);
        drop(total);
        let until = own.max(all);
        if until > now + WORTH_WAITING {
            self.wait = Some(Box::pin(tokio::time::sleep_until(until.into())));
        }
    }
}

/// The connection.
pub struct Wire {
    stream: TcpStream,
    faults: Arc<FaultControl>,
    total: Arc<Total>,
    reset: ResetFlag,
    sending: Direction,
    receiving: Direction,
}

impl Wire {
    /// Wraps a connection that was just accepted.
    pub fn new(
        stream: TcpStream,
        faults: Arc<FaultControl>,
        total: Arc<Total>,
        reset: ResetFlag,
    ) -> Self {
        Self {
            stream,
            faults,
            total,
            reset,
            sending: Direction::new(),
            receiving: Direction::new(),
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if *crate::locked(&self.reset.0) {
            // Without it the peer sees a proper end; nothing depends on that.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        ready!(this.receiving.poll_ready(context));
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        let bytes = buffer.filled().len() - before;
        let rates = this.faults.rates();
        this.receiving.spend(bytes, rates, &this.total.received);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        ready!(this.sending.poll_ready(context));
        let rates = this.faults.rates();
        let step = if rates == (0, 0) {
            bytes.len()
        } else {
            bytes.len().min(STEP_BYTES)
        };
        let sent = ready!(Pin::new(&mut this.stream).poll_write(context, &bytes[..step]))?;
        this.sending.spend(sent, rates, &this.total.sent);
        Poll::Ready(Ok(sent))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        ready!(this.sending.poll_ready(context));
        let rates = this.faults.rates();
        let sent = ready!(Pin::new(&mut this.stream).poll_write_vectored(context, slices))?;
        this.sending.spend(sent, rates, &this.total.sent);
        Poll::Ready(Ok(sent))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if *crate::locked(&self.reset.0) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
