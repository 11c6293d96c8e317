// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A whole packet: header, sections, body, payload (srd-protocol 2 to 5). Called by the machine and
//! by the simulator.

use crate::bytes::{Head, Reader};
use crate::header::{Header, Kind, Opening, flag};
use crate::malformed::{Malformed, require};
use crate::marks::Marks;
use crate::{
    Accept, Acknowledgement, Alive, Data, Greeting, Hello, Message, Receipt, Refusal, Segment,
    Stale, eager, offer,
};

/// What a packet is about; one variant per kind (srd-protocol 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body {
    /// A whole message; the payload is all of it.
    Eager(Message),
    /// A piece of a message.
    Segment(Segment),
    /// An announcement.
    Offer(Message),
    /// A landing for an announced message.
    Accept(Accept),
    /// A piece of an accepted message.
    Data(Data),
    /// A message was delivered.
    Receipt(Receipt),
    /// A message will never be taken.
    Refusal(Refusal),
    /// Nothing but the section.
    Acknowledgement,
    /// A question.
    Probe,
    /// The target incarnation is gone.
    Stale(Stale),
    /// Come again.
    Greeting(Greeting),
    /// The process lives.
    Alive(Alive),
}

/// What a probe has for a body, so that nothing that answers it is longer (srd-protocol 14.3).
const PROBE_BYTES: usize = 40;

impl Body {
    /// Its kind.
    #[inline]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Eager(_) => Kind::Eager,
            Self::Segment(_) => Kind::Segment,
            Self::Offer(_) => Kind::Offer,
            Self::Accept(_) => Kind::Accept,
            Self::Data(_) => Kind::Data,
            Self::Receipt(_) => Kind::Receipt,
            Self::Refusal(_) => Kind::Refusal,
            Self::Acknowledgement => Kind::Acknowledgement,
            Self::Probe => Kind::Probe,
            Self::Stale(_) => Kind::Stale,
            Self::Greeting(_) => Kind::Greeting,
            Self::Alive(_) => Kind::Alive,
        }
    }

    fn write(&self, head: &mut Head) {
        match self {
            Self::Eager(message) | Self::Offer(message) => message.write(head),
            Self::Segment(segment) => segment.write(head),
            Self::Accept(accept) => accept.write(head),
            Self::Data(data) => data.write(head),
            Self::Receipt(receipt) => receipt.write(head),
            Self::Refusal(refusal) => refusal.write(head),
            Self::Stale(stale) => stale.write(head),
            Self::Greeting(greeting) => greeting.write(head),
            Self::Alive(alive) => alive.write(head),
            Self::Probe => head.put(&[0; PROBE_BYTES]),
            Self::Acknowledgement => {}
        }
    }

    #[inline(always)]
    fn read(kind: Kind, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        if kind == Kind::Eager {
            return Ok(Self::Eager(eager::read(reader)?));
        }
        Self::read_other(kind, reader)
    }

    fn read_other(kind: Kind, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match kind {
            Kind::Eager => Self::Eager(eager::read(reader)?),
            Kind::Segment => Self::Segment(Segment::read(reader)?),
            Kind::Offer => Self::Offer(offer::read(reader)?),
            Kind::Accept => Self::Accept(Accept::read(reader)?),
            Kind::Data => Self::Data(Data::read(reader)?),
            Kind::Receipt => Self::Receipt(Receipt::read(reader)?),
            Kind::Refusal => Self::Refusal(Refusal::read(reader)?),
            Kind::Acknowledgement => Self::Acknowledgement,
            Kind::Probe => {
                reader.zeros::<PROBE_BYTES>("room of a probe")?;
                Self::Probe
            }
            Kind::Stale => Self::Stale(Stale::read(reader)?),
            Kind::Greeting => Self::Greeting(Greeting::read(reader)?),
            Kind::Alive => Self::Alive(Alive::read(reader)?),
        })
    }

    /// Whether bytes may follow the body.
    fn has_payload(&self) -> bool {
        matches!(
            self,
            Self::Eager(_) | Self::Segment(_) | Self::Data(_) | Self::Probe
        )
    }
}

/// A packet; its payload is a part of the datagram it came in, or empty on the way out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// The first 48 bytes.
    pub header: Header,
    /// How to reach the sender, while we may not know it.
    pub hello: Option<Hello>,
    /// What the sender has received.
    pub acknowledgement: Option<Acknowledgement>,
    /// What it is about.
    pub body: Body,
    /// What follows. [`Packet::write`] leaves it out.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Writes all but the payload; the tag's place holds 0.
    pub fn write(&self, head: &mut Head) {
        let (hello, acknowledgement) = (self.hello.as_ref(), self.acknowledgement.as_ref());
        Self::write_parts(&self.header, hello, acknowledgement, &self.body, head);
    }

    /// The same for who has the parts, and no use for a packet. Fast path: inlined, since a call
    /// would have all of the header read back from memory.
    #[inline(always)]
    pub fn write_parts(
        header: &Header,
        hello: Option<&Hello>,
        acknowledgement: Option<&Acknowledgement>,
        body: &Body,
        head: &mut Head,
    ) {
        let mut sections = 0;
        if hello.is_some() {
            sections |= flag::HELLO;
        }
        if let Some(acknowledgement) = acknowledgement {
            sections |= flag::ACKNOWLEDGEMENT;
            if acknowledgement.marks.is_some() {
                sections |= flag::MARKS;
            }
        }
        header.write(body.kind(), sections, head);
        if let Some(hello) = hello {
            hello.write(head);
        }
        if let Some(acknowledgement) = acknowledgement {
            acknowledgement.write(head);
        }
        body.write(head);
    }

    /// Parses a datagram, once, with all checks of clauses 2 to 5. Fast path.
    ///
    /// # Errors
    /// The first field that breaks a rule.
    #[inline]
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(datagram);
        let (Opening { kind, flags }, header) = Header::read(&mut reader)?;
        let hello = if flags & flag::HELLO != 0 {
            Some(Hello::read(&mut reader)?)
        } else {
            None
        };
        let mut acknowledgement = if flags & flag::ACKNOWLEDGEMENT != 0 {
            Some(Acknowledgement::read(&mut reader)?)
        } else {
            None
        };
        if flags & flag::MARKS != 0 {
            require(
                acknowledgement.is_some(),
                "flags",
                u64::from(flags),
                "marks come with the acknowledgement section",
            )?;
            let marks = Some(Marks::read(&mut reader)?);
            if let Some(section) = &mut acknowledgement {
                section.marks = marks;
            }
        }
        require(
            kind != Kind::Acknowledgement || acknowledgement.is_some(),
            "flags",
            u64::from(flags),
            "an acknowledgement by itself has the acknowledgement section",
        )?;
        let body = Body::read(kind, &mut reader)?;
        let payload = reader.rest();
        require(
            body.has_payload() || payload.is_empty(),
            "payload length",
            payload.len() as u64,
            "packets of this kind have none",
        )?;
        if header.further_count > 0 {
            let before_last = unit_bytes(payload, &header) * usize::from(header.further_count);
            require(
                before_last < payload.len(),
                "further sequences",
                u64::from(header.further_count),
                "each has at least 1 byte of the payload",
            )?;
        }
        Ok(Self {
            header,
            hello,
            acknowledgement,
            body,
            payload,
        })
    }

    /// The same packet with `count` of its sequences alone, from the `from`th on; there are as many
    /// (srd-protocol 19.1, 19.2).
    pub fn part(&self, from: u8, count: u8) -> Self {
        let unit_bytes = unit_bytes(self.payload, &self.header);
        let start = unit_bytes * usize::from(from);
        let end = self
            .payload
            .len()
            .min(start + unit_bytes * usize::from(count));
        let mut part = *self;
        part.header.sequence += u64::from(from);
        part.header.further_count = count.saturating_sub(1);
        part.payload = &self.payload[start..end];
        if let Body::Segment(Segment { offset_bytes, .. }) | Body::Data(Data { offset_bytes, .. }) =
            &mut part.body
        {
            *offset_bytes += start as u64;
        }
        part
    }
}

/// What each sequence has of the payload, but for the last one, which has the rest (srd-protocol
/// 19.1).
fn unit_bytes(payload: &[u8], header: &Header) -> usize {
    payload
        .len()
        .div_ceil(1 + usize::from(header.further_count))
}
