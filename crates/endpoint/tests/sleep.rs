// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sleeping on a queue's descriptor over shared memory: a message wakes the sleeper, and none is
//! slept over.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use weft_endpoint::{
    Class, Domain, DomainSettings, EndpointId, EndpointSettings, Error, FiAddr, Inject,
    QueueBinding, QueueId, QueueSettings, Receive, UserBuffer, VectorKind,
};
use weft_os::sleep::wait_readable;

/// An endpoint with a queue for each direction.
struct Side {
    domain: Domain<weft_shm::Transport>,
    endpoint: EndpointId,
    sends: QueueId,
    receives: QueueId,
    other: FiAddr,
}

fn pair() -> [Side; 2] {
    let mut sides = [0, 1].map(|_| {
        let mut domain = Domain::new(DomainSettings::default());
        let (vector, sends) = (
            domain.vectors().open(VectorKind::Map),
            domain.queues().open(QueueSettings::default()),
        );
        let receives = domain.queues().open(QueueSettings::default());
        let address = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let endpoint = domain.endpoints().open(EndpointSettings {
            address,
            ..EndpointSettings::default()
        });
        domain.endpoints().bind_vector(endpoint, vector).unwrap();
        let binding = |transmit| QueueBinding {
            transmit,
            receive: !transmit,
            selective: false,
        };
        domain
            .endpoints()
            .bind_queue(endpoint, sends, binding(true))
            .unwrap();
        domain
            .endpoints()
            .bind_queue(endpoint, receives, binding(false))
            .unwrap();
        domain.endpoints().enable(endpoint).unwrap();
        (
            Side {
                domain,
                endpoint,
                sends,
                receives,
                other: FiAddr::UNSPEC,
            },
            vector,
        )
    });
    let addresses = [0, 1].map(|index| {
        sides[index]
            .0
            .domain
            .endpoints()
            .local_address(sides[index].0.endpoint)
            .unwrap()
    });
    for index in [0, 1] {
        let (side, vector) = &mut sides[index];
        side.other = side
            .domain
            .vectors()
            .insert(*vector, addresses[1 - index])
            .unwrap();
    }
    sides.map(|(side, _)| side)
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
        assert!(wait_readable(descriptor, 5000), "the message rings");
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
        wait_readable(descriptor, 5000),
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
