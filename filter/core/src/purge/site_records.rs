// SPDX-License-Identifier: Apache-2.0
//! Records of the sites in one slot of a table in shared data.

use std::collections::BTreeMap;

use crate::workers::byte_reader::ByteReader;
use crate::workers::shared_table::SharedRecord;

/// Record of one site.
pub trait SiteRecord: Clone + Default + PartialEq {
    /// First byte of a slot whose records have this layout.
    const FORMAT: u8;

    /// Reads the bytes of [`SiteRecord::encode`]; `None` for other bytes.
    fn decode(reader: &mut ByteReader<'_>) -> Option<Self>;

    /// Writes the record to the end of `bytes`.
    fn encode(&self, bytes: &mut Vec<u8>);
}

/// Records of sites, by the names of the sites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteRecords<R>(pub BTreeMap<String, R>);

impl<R: SiteRecord> SharedRecord for SiteRecords<R> {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = ByteReader(bytes);
        if reader.u8()? != R::FORMAT {
            return None;
        }
        let mut sites = BTreeMap::new();
        while !reader.is_empty() {
            let length = reader.u16()?;
            let name = reader.slice(usize::from(length))?;
            let name = std::str::from_utf8(name).ok()?.to_owned();
            sites.insert(name, R::decode(&mut reader)?);
        }
        Some(Self(sites))
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![R::FORMAT];
        for (name, record) in &self.0 {
            let length = u16::try_from(name.len()).unwrap_or(u16::MAX);
            bytes.extend(length.to_le_bytes());
            bytes.extend(name.as_bytes());
            record.encode(&mut bytes);
        }
        bytes
    }
}
