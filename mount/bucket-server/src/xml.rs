// SPDX-License-Identifier: Apache-2.0 OR MIT
//! S3's XML. Answers are written element by element; the two documents that clients send are read
//! into trees.

use quick_xml::Reader;
use quick_xml::escape::{escape, unescape};
use quick_xml::events::Event;

use crate::error::{Code, Result, S3Error};

const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// An XML document being written.
pub struct Document {
    text: String,
    open: Vec<String>,
}

impl Document {
    /// Opens the root, in S3's namespace.
    pub fn new(root: &str) -> Self {
        let mut document = Self::plain(root);
        document.text.truncate(document.text.len() - 1);
        document.text.push_str(&format!(" xmlns=\"{NAMESPACE}\">"));
        document
    }

    /// Opens the root in no namespace, as errors have it.
    pub fn plain(root: &str) -> Self {
        let text = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{root}>");
        Self {
            text,
            open: vec![root.to_owned()],
        }
    }

    /// Writes an element with text.
    pub fn element(&mut self, name: &str, text: &str) {
        let text = escape(text);
        self.text.push_str(&format!("<{name}>{text}</{name}>"));
    }

    /// Writes an element with text where there is any.
    pub fn optional(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.element(name, text);
        }
    }

    /// Opens an element.
    pub fn open(&mut self, name: &str) {
        self.text.push_str(&format!("<{name}>"));
        self.open.push(name.to_owned());
    }

    /// Closes the element opened last.
    pub fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            self.text.push_str(&format!("</{name}>"));
        }
    }

    /// Closes all that is open.
    pub fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.text
    }
}

/// An element that was read.
#[derive(Debug, Default)]
pub struct Element {
    /// Without its namespace's prefix.
    pub name: String,
    /// The text directly inside.
    pub text: String,
    /// The elements directly inside.
    pub children: Vec<Element>,
}

impl Element {
    /// The text of the first child of that name.
    pub fn text_of(&self, name: &str) -> Option<&str> {
        let child = self.children.iter().find(|child| child.name == name);
        child.map(|child| child.text.trim())
    }
}

/// Reads a document; its root comes back.
///
/// # Errors
/// `MalformedXML`.
pub fn read(bytes: &[u8]) -> Result<Element> {
    let malformed = || {
        let text = "The XML you provided was not well-formed or did not validate against our \
            published schema";
        S3Error::new(Code::MalformedXML, text)
    };
    let text = std::str::from_utf8(bytes).map_err(|_| malformed())?;
    let mut reader = Reader::from_str(text);
    let mut open = vec![Element::default()];
    loop {
        match reader.read_event().map_err(|_| malformed())? {
            Event::Start(start) => open.push(Element {
                name: start.local_name().as_ref().to_owned(),
                ..Element::default()
            }),
            Event::Empty(start) => {
                let name = start.local_name().as_ref().to_owned();
                let inside = open.last_mut().ok_or_else(malformed)?;
                inside.children.push(Element {
                    name,
                    ..Element::default()
                });
            }
            Event::Text(text) => {
                let inside = open.last_mut().ok_or_else(malformed)?;
                inside.text.push_str(&text);
            }
            Event::GeneralRef(reference) => {
                let text = format!("&{};", &*reference);
                let text = unescape(&text).map_err(|_| malformed())?;
                open.last_mut().ok_or_else(malformed)?.text.push_str(&text);
            }
            Event::End(_) => {
                let ended = open.pop().ok_or_else(malformed)?;
                open.last_mut().ok_or_else(malformed)?.children.push(ended);
            }
            Event::Eof => break,
            _ => {}
        }
    }
    let mut outside = open
        .pop()
        .filter(|_| open.is_empty())
        .ok_or_else(malformed)?;
    outside.children.pop().ok_or_else(malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let mut document = Document::new("Root");
        document.element("Key", "a & <b>\"'");
        document.open("Inner");
        document.optional("Text", Some("ü"));
        document.optional("None", None);
        let root = read(document.finish().as_bytes()).unwrap();
        assert_eq!(root.name, "Root");
        assert_eq!(root.text_of("Key"), Some("a & <b>\"'"));
        assert_eq!(root.children[1].text_of("Text"), Some("ü"));
        assert_eq!(root.children[1].children.len(), 1);
    }

    #[test]
    fn broken_documents_are_refused() {
        for broken in ["", "<a>", "<a></b>", "<a>&unknown;</a>"] {
            let error = read(broken.as_bytes()).unwrap_err();
            assert_eq!(error.code, Code::MalformedXML, "{broken}");
        }
    }
}
