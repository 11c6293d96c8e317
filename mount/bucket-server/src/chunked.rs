// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Takes `aws-chunked` bodies apart: pieces with their lengths and, where they are signed, their
//! signatures, then trailers. Source: "Signature Calculations for the Authorization Header:
//! Transferring Payload in Multiple Chunks" and "... Including Trailing Headers" in the Amazon S3
//! API Reference.

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::error::{Code, Result, S3Error};
use crate::sign::{Signed, hex};

/// Chosen: no line of the framing is longer.
const LINE_BYTES: usize = 4096;

/// The state between two buffers.
pub struct Decoder<'a> {
    state: State,
    line: Vec<u8>,
    /// Set where pieces are signed.
    chain: Option<Chain<'a>>,
    /// `name:value` in the order of arrival, names in lower case.
    trailers: Vec<(String, String)>,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Header,
    Data(u64),
    /// The line break after a piece.
    End,
    Trailer,
    Done,
}

struct Chain<'a> {
    signed: &'a Signed,
    before: String,
    expected: String,
    digest: Sha256,
}

impl<'a> Decoder<'a> {
    /// For a body whose pieces are signed, in a chain that begins with the request's signature, or
    /// are not.
    pub fn new(signed: &'a Signed, pieces_are_signed: bool) -> Self {
        let chain = pieces_are_signed.then(|| Chain {
            signed,
            before: signed.signature.clone(),
            expected: String::new(),
            digest: Sha256::new(),
        });
        Self {
            state: State::Header,
            line: Vec::new(),
            chain,
            trailers: Vec::new(),
        }
    }

    /// Takes the next buffer; what is data in it comes back.
    ///
    /// # Errors
    /// `IncompleteBody` for broken framing, `SignatureDoesNotMatch`.
    pub fn push(&mut self, mut input: Bytes) -> Result<Vec<Bytes>> {
        let mut data = Vec::new();
        while !input.is_empty() {
            if let State::Data(left) = self.state {
                let taken = left.min(input.len() as u64);
                let piece = input.split_to(taken as usize);
                if let Some(chain) = &mut self.chain {
                    chain.digest.update(&piece);
                }
                data.push(piece);
                self.state = if taken == left {
                    self.check_piece()?;
                    State::End
                } else {
                    State::Data(left - taken)
                };
                continue;
            }
            let end = input.iter().position(|byte| *byte == b'\n');
            let taken = input.split_to(end.map_or(input.len(), |end| end + 1));
            self.line.extend_from_slice(&taken);
            if self.line.len() > LINE_BYTES {
                return Err(broken("a line is too long"));
            }
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                self.take_line(&line)?;
            }
        }
        Ok(data)
    }

    /// The end of the body: the trailers.
    ///
    /// # Errors
    /// `IncompleteBody` where the body broke off.
    pub fn finish(self) -> Result<Vec<(String, String)>> {
        let is_whole = self.state == State::Done
            || (self.state == State::Trailer && self.line.is_empty() && self.trailers.is_empty());
        if !is_whole {
            return Err(broken("it broke off"));
        }
        Ok(self.trailers)
    }

    fn take_line(&mut self, line: &str) -> Result<()> {
        match self.state {
            State::End if line.is_empty() => self.state = State::Header,
            State::Header => return self.take_header(line),
            State::Trailer if line.is_empty() => self.state = State::Done,
            State::Trailer => return self.take_trailer(line),
            State::Done if line.is_empty() => {}
            _ => return Err(broken("its framing is wrong")),
        }
        Ok(())
    }

    fn take_header(&mut self, line: &str) -> Result<()> {
        let (length, extension) = line.split_once(';').unwrap_or((line, ""));
        let length = u64::from_str_radix(length, 16)
            .map_err(|_| broken("a piece's length is no hexadecimal number"))?;
        if let Some(chain) = &mut self.chain {
            let signature = extension
                .strip_prefix("chunk-signature=")
                .ok_or_else(|| broken("a piece has no signature"))?;
            signature.clone_into(&mut chain.expected);
        }
        self.state = State::Data(length);
        if length == 0 {
            self.check_piece()?;
            self.state = State::Trailer;
        }
        Ok(())
    }

    fn check_piece(&mut self) -> Result<()> {
        if let Some(chain) = &mut self.chain {
            let digest = hex(&std::mem::take(&mut chain.digest).finalize());
            let signature = chain.signed.chunk(&chain.before, &digest);
            if signature != chain.expected {
                return Err(mismatch());
            }
            chain.before = signature;
        }
        Ok(())
    }

    fn take_trailer(&mut self, line: &str) -> Result<()> {
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| broken("a trailer has no colon"))?;
        let name = name.trim().to_ascii_lowercase();
        let value = value.trim().to_owned();
        if name != "x-amz-trailer-signature" {
            self.trailers.push((name, value));
        } else if let Some(chain) = &self.chain {
            let lines: String = self
                .trailers
                .iter()
                .map(|(name, value)| format!("{name}:{value}\n"))
                .collect();
            if chain.signed.trailer(&chain.before, &lines) != value {
                return Err(mismatch());
            }
        }
        Ok(())
    }
}

fn broken(what: &str) -> S3Error {
    let text = format!("The request body is not aws-chunked: {what}.");
    S3Error::new(Code::IncompleteBody, text)
}

fn mismatch() -> S3Error {
    let text = "The signature of a piece of the body does not match.";
    S3Error::new(Code::SignatureDoesNotMatch, text)
}
