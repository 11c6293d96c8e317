// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Turns a tree of values into one of our types, by serde. An error names the place and the field.
//!
//! Called by `file.rs` with the tree of `parse.rs`. A scalar reaches the type as the text that the
//! user wrote, so `010` and `no` stay unchanged where the type wants a text. Types of numbers parse
//! the text themselves.

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::fault::Fault;
use crate::node::{Entry, Node, Scalar, Value};

/// Reads a value as a `T`.
///
/// # Errors
/// What the type does not take: the first fault, with its place.
pub fn decode<T: DeserializeOwned>(node: &Node) -> Result<T, Fault> {
    T::deserialize(Decoder(node)).map_err(|fault| fault.at(node.place))
}

struct Decoder<'a>(&'a Node);

impl Decoder<'_> {
    fn scalar<'a, 'de, V: Visitor<'de>>(&'a self, visitor: &V) -> Result<&'a Scalar, Fault> {
        match &self.0.value {
            Value::Scalar(scalar) if scalar.is_null() => Err(Fault::new(
                "no value is given; give one (an empty text is `\"\"`), or remove the name",
            )
            .at(self.0.place)),
            Value::Scalar(scalar) => Ok(scalar),
            _ => Err(Fault::instead(self.0, visitor as &dyn Expected)),
        }
    }
}

impl<'de> Deserializer<'de> for Decoder<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Scalar(_) => self.deserialize_str(visitor),
            Value::List(_) => self.deserialize_seq(visitor),
            Value::Map(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let scalar = self.scalar(&visitor)?;
        visitor.visit_str(&scalar.text)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.scalar(&visitor)?.truth() {
            Some(truth) => visitor.visit_bool(truth),
            None => Err(Fault::instead(self.0, "true or false")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::List(nodes) => visitor.visit_seq(List { nodes, index: 0 }),
            _ => Err(Fault::instead(self.0, "a list, as in [a, b]")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Map(entries) => visitor.visit_map(Map { entries, index: 0 }),
            _ => Err(Fault::instead(
                self.0,
                "fields with values, as in `name: value`",
            )),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let text = self.scalar(&visitor)?.text.as_str();
        let word: StrDeserializer<'_, Fault> = text.into_deserializer();
        visitor
            .visit_enum(word)
            .map_err(|fault| fault.at(self.0.place))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct tuple
        tuple_struct identifier ignored_any
    }
}

struct List<'a> {
    nodes: &'a [Node],
    index: usize,
}

impl<'de> SeqAccess<'de> for List<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let Some(node) = self.nodes.get(self.index) else {
            return Ok(None);
        };
        let name = format!("[{}]", self.index);
        self.index += 1;
        seed.deserialize(Decoder(node))
            .map(Some)
            .map_err(|fault| fault.at(node.place).within(&name))
    }
}

struct Map<'a> {
    entries: &'a [Entry],
    index: usize,
}

impl<'de> MapAccess<'de> for Map<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let Some(entry) = self.entries.get(self.index) else {
            return Ok(None);
        };
        let name: StrDeserializer<'_, Fault> = entry.name.as_str().into_deserializer();
        seed.deserialize(name)
            .map(Some)
            .map_err(|fault| fault.at(entry.place))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some(entry) = self.entries.get(self.index) else {
            return Err(Fault::new("a value is missing"));
        };
        self.index += 1;
        seed.deserialize(Decoder(&entry.node))
            .map_err(|fault| fault.at(entry.node.place).within(&entry.name))
    }
}
