// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Decodes `aws-chunked` bodies: chunks with their lengths and, if they are signed, their
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the examples in the API reference: 65 KiB of `a` in two pieces, with and without a
    /// trailer.
    fn signed(signature: &str) -> Signed {
        Signed::for_test(
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "20130524/us-east-1/s3/aws4_request",
            "20130524T000000Z",
            signature,
        )
    }

    fn body(signatures: [&str; 3], trailers: &str) -> Bytes {
        let mut body = String::new();
        for (length, signature) in [65_536, 1024, 0].into_iter().zip(signatures) {
            body += &format!("{length:x};chunk-signature={signature}\r\n");
            if length > 0 {
                body += &"a".repeat(length);
                body += "\r\n";
            }
        }
        Bytes::from(body + trailers + "\r\n")
    }

    /// The data's length and the trailers, of a body that comes in buffers of `step` bytes.
    fn decode(
        signed: &Signed,
        mut body: Bytes,
        step: usize,
    ) -> Result<(usize, Vec<(String, String)>)> {
        let mut decoder = Decoder::new(signed, true);
        let mut length = 0;
        while !body.is_empty() {
            let buffer = body.split_to(step.min(body.len()));
            length += decoder.push(buffer)?.iter().map(Bytes::len).sum::<usize>();
        }
        Ok((length, decoder.finish()?))
    }

    const SEED: &str = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
    const PIECES: [&str; 3] = [
        "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
        "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
        "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
    ];

    #[test]
    fn published_example_is_decoded_in_buffers_of_any_size() {
        for step in [1, 7, 1000, 65_536, 100_000] {
            let decoded = decode(&signed(SEED), body(PIECES, ""), step).unwrap();
            assert_eq!(decoded, (66_560, Vec::new()), "{step}");
        }
    }

    #[test]
    fn changed_and_short_bodies_are_refused() {
        let mut changed = body(PIECES, "").to_vec();
        changed[70_000 - 4000] ^= 1;
        let code = |body: Bytes| decode(&signed(SEED), body, 4096).unwrap_err().code;
        assert_eq!(code(Bytes::from(changed)), Code::SignatureDoesNotMatch);
        let whole = body(PIECES, "");
        for length in [10, 30_000, 66_000, whole.len() - 3] {
            let short = whole.slice(..length);
            assert_eq!(code(short), Code::IncompleteBody, "{length}");
        }
    }

    #[test]
    fn published_trailer_is_decoded_and_its_signature_checked() {
        let seed = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e";
        let pieces = [
            "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
            "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
            "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
        ];
        let trailers = "x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:\
            d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n";
        let (length, found) = decode(&signed(seed), body(pieces, trailers), 999).unwrap();
        assert_eq!(length, 66_560);
        let crc = ("x-amz-checksum-crc32c".to_owned(), "sOO8/Q==".to_owned());
        assert_eq!(found, [crc]);
        let wrong = trailers.replace("sOO8", "sOO9");
        let error = decode(&signed(seed), body(pieces, &wrong), 999).unwrap_err();
        assert_eq!(error.code, Code::SignatureDoesNotMatch);
    }
}
