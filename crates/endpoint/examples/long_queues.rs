// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a message costs while thousands of others wait: one 8-byte message there and back between
//! two threads, with no other, with N receives posted that nobody matches, and with N unexpected
//! messages that nobody receives. The three take turns on the same two endpoints, since the time of
//! a line's way differs by where it lies: between two pairs of endpoints by up to a sixth. Prints
//! medians and ratios.
//!
//! Usage: long_queues [N [ROUNDS]]; 10,000 and 21 if not given.

use std::sync::{Arc, Barrier};
use std::time::Instant;

use weft_endpoint::{
    Class, Domain, DomainSettings, EndpointId, EndpointSettings, FiAddr, Inject, QueueBinding,
    QueueId, QueueSettings, Receive, UserBuffer, VectorKind,
};

const TRIPS: u64 = 4000;
const WARM_TRIPS: u64 = 400;
const PING: u64 = 1 << 40;

struct Side {
    domain: Domain<weft_shm::Transport>,
    endpoint: EndpointId,
    queue: QueueId,
    vector: weft_endpoint::VectorId,
    buffer: UserBuffer,
}

fn open() -> Side {
    let mut domain = Domain::new(DomainSettings::default());
    let settings = EndpointSettings {
        address: Some(([127, 0, 0, 1], 0).into()),
        ..EndpointSettings::default()
    };
    let endpoint = domain.endpoints().open(settings);
    let vector = domain.vectors().open(VectorKind::Table);
    let queue = domain.queues().open(QueueSettings::default());
    let binding = QueueBinding {
        transmit: true,
        receive: true,
        selective: false,
    };
    domain
        .endpoints()
        .bind_vector(endpoint, vector)
        .expect("vector");
    domain
        .endpoints()
        .bind_queue(endpoint, queue, binding)
        .expect("queue");
    domain.endpoints().enable(endpoint).expect("enable");
    Side {
        domain,
        endpoint,
        queue,
        vector,
        buffer: UserBuffer::leaked(&[8]),
    }
}

impl Side {
    fn send(&mut self, tag: u64) {
        let inject = Inject {
            class: Class::Tagged,
            tag,
            cq_data: None,
        };
        while self
            .domain
            .endpoint(self.endpoint)
            .unwrap()
            .inject(FiAddr(0), &inject, &self.buffer)
            .is_err()
        {
            let _ = self.domain.endpoint(self.endpoint).unwrap().progress();
        }
    }

    fn post(&mut self, tag: u64) {
        let receive = Receive {
            class: Class::Tagged,
            source: FiAddr(0),
            tag,
            ignore: 0,
            flags: None,
            context: 0,
        };
        self.domain
            .endpoint(self.endpoint)
            .unwrap()
            .receive(&receive, || self.buffer.clone())
            .expect("receive");
    }

    fn wait(&mut self) {
        while self.domain.queues().read(self.queue, 1, |_| ()).is_err() {}
    }

    /// One way, in ns, over many trips.
    fn exchange(&mut self, first: bool, trips: u64) -> f64 {
        let start = Instant::now();
        self.post(PING);
        for trip in 1..=trips {
            if first {
                self.send(PING);
            }
            self.wait();
            if trip < trips {
                self.post(PING);
            }
            if !first {
                self.send(PING);
            }
        }
        start.elapsed().as_nanos() as f64 / (2 * trips) as f64
    }

    /// Lets the others wait, measures, and has the others matched.
    fn round(&mut self, queued: Queued, count: u64, first: bool) -> f64 {
        match queued {
            Queued::None => {}
            Queued::Posted => (0..count).for_each(|tag| self.post(tag)),
            Queued::Unexpected => (0..count).for_each(|tag| self.send(tag)),
        }
        self.exchange(first, WARM_TRIPS);
        let one_way_ns = self.exchange(first, TRIPS);
        match queued {
            Queued::None => return one_way_ns,
            Queued::Posted => (0..count).for_each(|tag| self.send(tag)),
            Queued::Unexpected => (0..count).for_each(|tag| self.post(tag)),
        }
        (0..count).for_each(|_| self.wait());
        one_way_ns
    }
}

/// What waits beside the message.
#[derive(Clone, Copy)]
enum Queued {
    None,
    Posted,
    Unexpected,
}

/// All rounds of one side; times with nothing queued, receives, and unexpected messages.
fn run(mut side: Side, turns: &Barrier, (count, rounds): (u64, u64), first: bool) -> [Vec<f64>; 3] {
    let mut results = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        let all = [Queued::None, Queued::Posted, Queued::Unexpected];
        for (result, queued) in results.iter_mut().zip(all) {
            // Nobody's receives may come after the other's messages of the same tags.
            turns.wait();
            result.push(side.round(queued, count, first));
        }
    }
    results
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter_map(|text| text.parse::<u64>().ok());
    let (count, rounds) = (
        arguments.next().unwrap_or(10_000),
        arguments.next().unwrap_or(21),
    );
    let (mut near, mut far) = (open(), open());
    let (of_near, of_far) = (
        near.domain.endpoints().local_address(near.endpoint),
        far.domain.endpoints().local_address(far.endpoint),
    );
    near.domain
        .vectors()
        .insert(near.vector, of_far.expect("address"))
        .expect("insert");
    far.domain
        .vectors()
        .insert(far.vector, of_near.expect("address"))
        .expect("insert");
    let turns = Arc::new(Barrier::new(2));
    let of_far = Arc::clone(&turns);
    let second = std::thread::spawn(move || run(far, &of_far, (count, rounds), false));
    let results = run(near, &turns, (count, rounds), true);
    second.join().expect("second side");
    let [alone, posted, unexpected] = results.map(median);
    println!("one way, no others waiting:        {alone:.1} ns");
    println!(
        "with {count} receives posted:      {posted:.1} ns, ratio {:.2}",
        posted / alone
    );
    println!(
        "with {count} unexpected messages:  {unexpected:.1} ns, ratio {:.2}",
        unexpected / alone
    );
}
