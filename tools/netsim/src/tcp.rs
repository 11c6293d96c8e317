// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The baseline: one flow, one path, cumulative acknowledgements, slow start, AIMD, fast
//! retransmit, a time-out of at least 200 ms. In all that matters for loss and fairness it behaves
//! like TCP NewReno (RFC 5681, 6582, 6298).
//!
//! Called by host. Sequence numbers count packets, not bytes.

/// Bytes of a baseline header without IP: TCP with time stamps.
pub const HEADER_BYTES: u64 = 32;
/// Linux's least retransmission time-out.
pub(crate) const RTO_LEAST_NS: u64 = 200_000_000;
/// Initial window (RFC 6928).
pub(crate) const INITIAL_WINDOW: f64 = 10.0;

/// A packet of the baseline.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// The flow it is of.
    pub flow: u32,
    /// Number of the packet, or of the next one expected.
    pub number: u32,
    /// Whether it acknowledges.
    pub acknowledges: bool,
    /// When it left; echoed.
    pub sent_ns: u64,
}

/// The sending end of a flow.
#[derive(Clone, Debug)]
pub struct Source {
    flow: u32,
    packet_count: u32,
    first: u32,
    next: u32,
    window: f64,
    threshold: f64,
    duplicate_count: u32,
    /// In recovery until this packet is acknowledged.
    recover: Option<u32>,
    again: Option<u32>,
    srtt_ns: u64,
    rttvar_ns: u64,
    backoff: u32,
    deadline_ns: u64,
}

impl Source {
    /// A flow of so many packets.
    pub fn new(flow: u32, packet_count: u32) -> Self {
        Self {
            flow,
            packet_count,
            first: 0,
            next: 0,
            window: INITIAL_WINDOW,
            threshold: f64::INFINITY,
            duplicate_count: 0,
            recover: None,
            again: None,
            srtt_ns: 0,
            rttvar_ns: 0,
            backoff: 0,
            deadline_ns: u64::MAX,
        }
    }

    /// Whether everything is acknowledged.
    pub fn is_done(&self) -> bool {
        self.first >= self.packet_count
    }

    /// When to call [`Source::on_timeout`].
    pub fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    fn arm(&mut self, now_ns: u64) {
        let measured = self.srtt_ns + 4 * self.rttvar_ns;
        let rto_ns = measured.max(RTO_LEAST_NS) << self.backoff.min(6);
        self.deadline_ns = if self.is_done() {
            u64::MAX
        } else {
            now_ns + rto_ns
        };
    }

    /// The next packet that may leave, and whether it is a repetition.
    pub fn poll(&mut self, now_ns: u64) -> Option<(Segment, bool)> {
        let repeated = self.again.take();
        let number = match repeated {
            Some(number) => number,
            None => {
                let open = f64::from(self.next - self.first) < self.window;
                if !open || self.next >= self.packet_count {
                    return None;
                }
                self.next += 1;
                self.next - 1
            }
        };
        if self.deadline_ns == u64::MAX {
            self.arm(now_ns);
        }
        let segment = Segment {
            flow: self.flow,
            number,
            acknowledges: false,
            sent_ns: now_ns,
        };
        Some((segment, repeated.is_some()))
    }

    /// Takes an acknowledgement.
    pub fn on_acknowledged(&mut self, segment: &Segment, now_ns: u64) {
        self.sample(now_ns - segment.sent_ns);
        if segment.number <= self.first {
            self.on_duplicate(now_ns);
            return;
        }
        let fresh = segment.number - self.first;
        self.first = segment.number;
        self.next = self.next.max(self.first);
        self.duplicate_count = 0;
        self.backoff = 0;
        match self.recover {
            // A partial acknowledgement names the next hole (RFC 6582).
            Some(recover) if self.first < recover => self.again = Some(self.first),
            Some(_) => {
                self.recover = None;
                self.window = self.threshold;
            }
            None if self.window < self.threshold => self.window += f64::from(fresh),
            None => self.window += f64::from(fresh) / self.window,
        }
        self.arm(now_ns);
    }

    fn on_duplicate(&mut self, now_ns: u64) {
        self.duplicate_count += 1;
        if self.recover.is_some() {
            self.window += 1.0;
        } else if self.duplicate_count == 3 && !self.is_done() {
            self.threshold = (f64::from(self.next - self.first) / 2.0).max(2.0);
            self.window = self.threshold + 3.0;
            self.recover = Some(self.next);
            self.again = Some(self.first);
            self.arm(now_ns);
        }
    }

    /// RFC 6298.
    fn sample(&mut self, rtt_ns: u64) {
        if self.srtt_ns == 0 {
            (self.srtt_ns, self.rttvar_ns) = (rtt_ns, rtt_ns / 2);
        } else {
            self.rttvar_ns =
                self.rttvar_ns - self.rttvar_ns / 4 + self.srtt_ns.abs_diff(rtt_ns) / 4;
            self.srtt_ns = self.srtt_ns - self.srtt_ns / 8 + rtt_ns / 8;
        }
    }

    /// The time-out: everything from the first unacknowledged packet on is sent again.
    pub fn on_timeout(&mut self, now_ns: u64) {
        if now_ns < self.deadline_ns {
            return;
        }
        self.threshold = (f64::from(self.next - self.first) / 2.0).max(2.0);
        self.window = 1.0;
        self.next = self.first;
        self.recover = None;
        self.again = None;
        self.duplicate_count = 0;
        self.backoff += 1;
        self.arm(now_ns);
    }
}

/// The receiving end of a flow.
#[derive(Clone, Debug)]
pub struct Sink {
    arrived: Vec<bool>,
    expected: u32,
}

impl Sink {
    /// A flow of so many packets.
    pub fn new(packet_count: u32) -> Self {
        Self {
            arrived: vec![false; packet_count as usize],
            expected: 0,
        }
    }

    /// Whether everything has arrived.
    pub fn is_done(&self) -> bool {
        self.expected as usize == self.arrived.len()
    }

    /// Takes a packet; answers the acknowledgement.
    pub fn on_packet(&mut self, segment: &Segment) -> Segment {
        self.arrived[segment.number as usize] = true;
        while self.arrived.get(self.expected as usize) == Some(&true) {
            self.expected += 1;
        }
        Segment {
            number: self.expected,
            acknowledges: true,
            ..*segment
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round trip of 10 us; loses what `lose` says. Answers the time it took.
    fn transfer(packet_count: u32, mut lose: impl FnMut(u32, u32) -> bool) -> u64 {
        let (mut source, mut sink) = (Source::new(0, packet_count), Sink::new(packet_count));
        let mut now_ns = 0;
        let mut tries = vec![0; packet_count as usize];
        while !source.is_done() {
            let mut answers = Vec::new();
            while let Some((segment, _)) = source.poll(now_ns) {
                tries[segment.number as usize] += 1;
                if !lose(segment.number, tries[segment.number as usize]) {
                    answers.push(sink.on_packet(&segment));
                }
            }
            now_ns = if answers.is_empty() {
                source.deadline_ns()
            } else {
                now_ns + 10_000
            };
            for answer in &answers {
                source.on_acknowledged(answer, now_ns);
            }
            source.on_timeout(now_ns);
        }
        assert!(sink.is_done());
        now_ns
    }

    #[test]
    fn it_delivers_everything_whatever_is_lost() {
        assert!(transfer(1000, |_, _| false) < 100_000);
        let gap = transfer(1000, |number, tries| number == 500 && tries == 1);
        assert!(
            gap < 1_000_000,
            "a gap is repaired without a time-out: {gap}"
        );
        let tail = transfer(1000, |number, tries| number >= 995 && tries == 1);
        assert!(
            tail > RTO_LEAST_NS,
            "a lost tail waits for the time-out: {tail}"
        );
        transfer(300, |number, tries| (number * 7 + tries) % 3 == 0);
    }
}
