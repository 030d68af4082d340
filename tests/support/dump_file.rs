//! RDB files made by hand, record by record.

use ruvio_shard::rdb::{Checksum, save_length, save_string};

/// An RDB file in the making.
pub struct DumpFile(Vec<u8>);

impl DumpFile {
    /// A file of a version of the format.
    pub fn new(version: u32) -> DumpFile {
        DumpFile(format!("REDIS{version:04}").into_bytes())
    }

    /// Adds bytes.
    pub fn bytes(mut self, bytes: &[u8]) -> DumpFile {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Adds numbers, each in the form of lengths.
    pub fn numbers(mut self, numbers: &[u64]) -> DumpFile {
        numbers.iter().for_each(|&number| save_length(number, &mut self.0));
        self
    }

    /// Adds strings.
    pub fn strings<S: AsRef<[u8]>>(mut self, strings: &[S]) -> DumpFile {
        strings.iter().for_each(|string| save_string(string.as_ref(), &mut self.0));
        self
    }

    /// Adds the type and the name of a key.
    pub fn key(self, value_type: u8, name: &str) -> DumpFile {
        self.bytes(&[value_type]).strings(&[name])
    }

    /// The file, with its checksum.
    pub fn end(self) -> Vec<u8> {
        let mut bytes = self.bytes(&[0xff]).0;
        let mut checksum = Checksum::default();
        checksum.add(&bytes);
        bytes.extend_from_slice(&checksum.value().to_le_bytes());
        bytes
    }

    /// The file, as it is written where checksums are turned off.
    pub fn end_without_checksum(self) -> Vec<u8> {
        self.bytes(&[0xff]).bytes(&[0; 8]).0
    }
}

/// A ziplist of short strings.
pub fn ziplist(elements: &[&str]) -> Vec<u8> {
    let (mut body, mut last, mut previous) = (Vec::new(), 10, 0);
    for element in elements {
        last = 10 + body.len();
        body.push(previous);
        body.push(element.len() as u8);
        body.extend_from_slice(element.as_bytes());
        previous = 2 + element.len() as u8;
    }
    let len = 10 + body.len() as u32 + 1;
    let head = [&len.to_le_bytes()[..], &(last as u32).to_le_bytes(), &(elements.len() as u16).to_le_bytes()].concat();
    [&head[..], &body, &[0xff]].concat()
}

/// A listpack of short strings and numbers from 0 to 127.
pub fn listpack(elements: &[&str]) -> Vec<u8> {
    let mut body = Vec::new();
    for element in elements {
        match element.parse::<u8>() {
            Ok(number) if number < 128 => body.extend_from_slice(&[number, 1]),
            _ => {
                body.push(0x80 | element.len() as u8);
                body.extend_from_slice(element.as_bytes());
                body.push(1 + element.len() as u8);
            }
        }
    }
    let len = 6 + body.len() as u32 + 1;
    let head = [&len.to_le_bytes()[..], &(elements.len() as u16).to_le_bytes()].concat();
    [&head[..], &body, &[0xff]].concat()
}
