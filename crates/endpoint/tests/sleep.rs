// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sleeping on a queue's descriptor over shared memory: a message wakes the sleeper, and none is
//! slept over.

#[path = "shared/opened.rs"]
mod opened;

use std::time::{Duration, Instant};

use opened::{BOTH, Opened};
use weft_endpoint::{
    Class, Domain, EndpointId, Error, FiAddr, Inject, QueueBinding, QueueId, Receive, UserBuffer,
};
use weft_os::sleep::wait_readable;
use weft_shm::Settings;

/// An endpoint with a queue for each direction.
struct Side {
    domain: Domain<weft_shm::Transport>,
    endpoint: EndpointId,
    sends: QueueId,
    receives: QueueId,
    other: FiAddr,
}

fn pair() -> [Side; 2] {
    let (sends, receives) = (
        QueueBinding {
            receive: false,
            ..BOTH
        },
        QueueBinding {
            transmit: false,
            ..BOTH
        },
    );
    let mut opened = [(), ()].map(|()| Opened::new(Settings::default(), [sends, receives]));
    let [first, second] = opened.each_mut().map(Opened::address);
    let mut addresses = [second, first].into_iter();
    opened.map(|mut opened| {
        let address = addresses.next().expect("one for each");
        let other = opened.domain.vectors().insert(opened.vector, address);
        let [sends, receives] = opened.queues;
        Side {
            domain: opened.domain,
            endpoint: opened.endpoint,
            sends,
            receives,
            other: other.unwrap(),
        }
    })
}

impl Side {
    fn post(&mut self) {
        let (source, class) = (FiAddr::UNSPEC, Class::Message);
        let receive = Receive {
            class,
            source,
            tag: 0,
            ignore: 0,
            flags: None,
            context: 5,
        };
        self.domain
            .endpoint(self.endpoint)
            .unwrap()
            .receive(&receive, || UserBuffer::leaked(&[8]))
            .unwrap();
    }

    fn inject(&mut self) {
        let inject = Inject {
            class: Class::Message,
            tag: 0,
            cq_data: None,
        };
        let payload = UserBuffer::leaked(&[8]);
        while self
            .domain
            .endpoint(self.endpoint)
            .unwrap()
            .inject(self.other, &inject, &payload)
            == Err(Error::Again)
        {
            self.domain.endpoint(self.endpoint).unwrap().progress();
        }
    }

    /// Reads until it may sleep.
    fn fall_asleep(&mut self, queue: QueueId) {
        let start = Instant::now();
        while !self.domain.waiting(queue).before_sleep() {
            assert!(
                start.elapsed() < Duration::from_secs(100),
                "there is always something to do"
            );
            assert_eq!(
                self.domain.queues().read(queue, 1, |_| ()),
                Err(Error::Again)
            );
        }
    }
}

/// Both have exchanged messages, and nothing is left to do.
fn acquainted() -> [Side; 2] {
    let mut sides = pair();
    for from in [0, 1, 0, 1] {
        sides[1 - from].post();
        sides[from].inject();
        while sides[1 - from]
            .domain
            .queues()
            .read(sides[1 - from].receives, 1, |_| ())
            .is_err()
        {
            sides[from]
                .domain
                .endpoint(sides[from].endpoint)
                .unwrap()
                .progress();
        }
    }
    sides
}

#[test]
fn a_message_wakes_the_sleeper() {
    let [mut sender, mut sleeper] = acquainted();
    let descriptor = sleeper.domain.waiting(sleeper.receives).fd().unwrap();
    for _ in 0..20 {
        sleeper.post();
        sleeper.fall_asleep(sleeper.receives);
        assert!(!wait_readable(descriptor, 0), "nothing has happened yet");
        sender.inject();
        assert!(wait_readable(descriptor, 60_000), "the message rings");
        sleeper.domain.waiting(sleeper.receives).after_sleep();
        assert_eq!(
            sleeper
                .domain
                .queues()
                .read(sleeper.receives, 1, |entry| assert_eq!(entry.context, 5)),
            Ok(1)
        );
    }
}

#[test]
fn nobody_may_sleep_over_a_message() {
    let [mut sender, mut sleeper] = acquainted();
    sleeper.post();
    sender.inject();
    assert!(
        !sleeper.domain.waiting(sleeper.receives).before_sleep(),
        "the message waits in the transport"
    );
    sleeper
        .domain
        .endpoint(sleeper.endpoint)
        .unwrap()
        .progress();
    assert!(
        !sleeper.domain.waiting(sleeper.receives).before_sleep(),
        "the message waits in the queue"
    );
    assert_eq!(
        sleeper.domain.queues().read(sleeper.receives, 1, |_| ()),
        Ok(1)
    );
    sleeper.fall_asleep(sleeper.receives);
}

#[test]
fn two_queues_sleep_on_one_transport_and_the_first_to_wake_leaves_the_other_asleep() {
    let [mut sender, mut sleeper] = acquainted();
    let descriptor = sleeper.domain.waiting(sleeper.receives).fd().unwrap();
    assert_eq!(
        sleeper.domain.waiting(sleeper.sends).fd(),
        Ok(descriptor),
        "one endpoint, one descriptor"
    );
    sleeper.post();
    sleeper.fall_asleep(sleeper.receives);
    sleeper.fall_asleep(sleeper.sends);
    sleeper.domain.waiting(sleeper.sends).after_sleep();
    assert!(!wait_readable(descriptor, 0));
    sender.inject();
    assert!(
        wait_readable(descriptor, 60_000),
        "the other sleeper is still rung for"
    );
    assert!(
        !sleeper.domain.waiting(sleeper.receives).before_sleep(),
        "what came meanwhile is received, not slept over"
    );
    sleeper.domain.waiting(sleeper.receives).after_sleep();
    assert_eq!(
        sleeper.domain.queues().read(sleeper.receives, 1, |_| ()),
        Ok(1)
    );
}
