// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a message costs while thousands of others wait: one 8-byte message there and back between two threads, with
//! no other, with N receives posted that nobody matches, and with N unexpected messages that nobody receives. Rounds
//! of the three take turns; prints medians and ratios.
//!
//! Usage: crowded [N [ROUNDS]]; N is 10,000 if not given.

use std::sync::mpsc;
use std::time::Instant;

use weft_endpoint::{
    Class, Domain, DomainSettings, EndpointId, EndpointSettings, FiAddr, Inject, QueueBinding,
    QueueId, QueueSettings, Receive, UserBuffer, VectorKind,
};

const TRIPS: u64 = 4000;
const PING: u64 = 1 << 40;

struct Side {
    domain: Domain,
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
    let endpoint = domain.open_endpoint(settings);
    let vector = domain.open_vector(VectorKind::Table);
    let queue = domain.open_queue(QueueSettings::default());
    let binding = QueueBinding {
        transmit: true,
        receive: true,
        selective: false,
    };
    domain.bind_vector(endpoint, vector).expect("vector");
    domain.bind_queue(endpoint, queue, binding).expect("queue");
    domain.enable(endpoint).expect("enable");
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
            .inject(self.endpoint, FiAddr(0), &inject, &self.buffer)
            .is_err()
        {
            let _ = self.domain.progress(self.endpoint);
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
            .receive(self.endpoint, &receive, self.buffer.clone())
            .expect("receive");
    }

    fn wait(&mut self) {
        while self.domain.read_queue(self.queue, 1, |_| ()).is_err() {}
    }

    /// One way, in ns, over many trips.
    fn exchange(&mut self, first: bool) -> f64 {
        let start = Instant::now();
        self.post(PING);
        for trip in 1..=TRIPS {
            if first {
                self.send(PING);
            }
            self.wait();
            if trip < TRIPS {
                self.post(PING);
            }
            if !first {
                self.send(PING);
            }
        }
        start.elapsed().as_nanos() as f64 / (2 * TRIPS) as f64
    }
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
    let mut near = Vec::new();
    let (go, wait) = mpsc::channel::<usize>();
    let mut far = Vec::new();
    for crowd in 0..3 {
        let (mut a, mut b) = (open(), open());
        let (of_a, of_b) = (
            a.domain.local_address(a.endpoint),
            b.domain.local_address(b.endpoint),
        );
        a.domain
            .insert(a.vector, of_b.expect("address"))
            .expect("insert");
        b.domain
            .insert(b.vector, of_a.expect("address"))
            .expect("insert");
        for tag in 0..count {
            if crowd == 1 {
                a.post(tag);
                b.post(tag);
            }
            if crowd == 2 {
                a.send(tag);
                b.send(tag);
                let _ = (a.domain.progress(a.endpoint), b.domain.progress(b.endpoint));
            }
        }
        near.push(a);
        far.push(b);
    }
    let second = std::thread::spawn(move || {
        for crowd in wait {
            far[crowd].exchange(false);
        }
    });
    let mut results = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        for crowd in 0..3 {
            go.send(crowd).expect("second side");
            results[crowd].push(near[crowd].exchange(true));
        }
    }
    drop(go);
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
