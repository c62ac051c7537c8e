//! Record batches written by hand, and just enough reading to count what comes back.

use std::time::{SystemTime, UNIX_EPOCH};

/// A batch to be written; wrong ones too.
#[derive(Clone)]
pub(crate) struct Batch {
    pub producer: (i64, i16),
    pub sequence: i32,
    pub transactional: bool,
    pub attributes: i16,
    pub records: Vec<(i64, Option<&'static str>, String)>,
    /// What the header says of them, where it is to lie.
    pub count: Option<i32>,
    pub last_delta: Option<i32>,
    pub magic: u8,
    pub spoil_checksum: bool,
}

pub(crate) fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    i64::try_from(now).expect("before the year 292278994")
}

impl Batch {
    /// So many records with the present time.
    pub(crate) fn of(count: usize) -> Self {
        Self::at(&vec![now(); count])
    }

    /// One record per time stamp.
    pub(crate) fn at(times: &[i64]) -> Self {
        Self {
            producer: (-1, -1),
            sequence: -1,
            transactional: false,
            attributes: 0,
            records: times
                .iter()
                .enumerate()
                .map(|(n, time)| (*time, Some("key"), format!("value {n}")))
                .collect(),
            count: None,
            last_delta: None,
            magic: 2,
            spoil_checksum: false,
        }
    }

    pub(crate) fn by(mut self, id: i64, epoch: i16, sequence: i32) -> Self {
        (self.producer, self.sequence) = ((id, epoch), sequence);
        self
    }

    pub(crate) fn transactional(mut self) -> Self {
        self.transactional = true;
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let base = self.records.first().map_or(0, |record| record.0);
        let newest = self.records.iter().map(|record| record.0).max().unwrap_or(0);
        let records = i32::try_from(self.records.len()).expect("few");
        let mut sealed = Vec::new();
        sealed.extend((self.attributes | if self.transactional { 0x10 } else { 0 }).to_be_bytes());
        sealed.extend(self.last_delta.unwrap_or(records - 1).to_be_bytes());
        sealed.extend(base.to_be_bytes());
        sealed.extend(newest.to_be_bytes());
        sealed.extend(self.producer.0.to_be_bytes());
        sealed.extend(self.producer.1.to_be_bytes());
        sealed.extend(self.sequence.to_be_bytes());
        sealed.extend(self.count.unwrap_or(records).to_be_bytes());
        for (delta, (time, key, value)) in self.records.iter().enumerate() {
            let mut record = vec![0];
            varint(&mut record, time - base);
            varint(&mut record, i64::try_from(delta).expect("few"));
            match key {
                Some(key) => blob(&mut record, key.as_bytes()),
                None => varint(&mut record, -1),
            }
            blob(&mut record, value.as_bytes());
            varint(&mut record, 0);
            blob(&mut sealed, &record);
        }
        let mut crc = crc32c::crc32c(&sealed);
        if self.spoil_checksum {
            crc ^= 1;
        }
        let mut batch = Vec::new();
        batch.extend(0i64.to_be_bytes());
        batch.extend(i32::try_from(sealed.len() + 9).expect("short").to_be_bytes());
        batch.extend((-1i32).to_be_bytes());
        batch.push(self.magic);
        batch.extend(crc.to_be_bytes());
        batch.extend(sealed);
        batch
    }
}

fn blob(out: &mut Vec<u8>, bytes: &[u8]) {
    varint(out, i64::try_from(bytes.len()).expect("short"));
    out.extend(bytes);
}

fn varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        out.push(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    out.push(rest.to_le_bytes()[0]);
}

/// Base offset, attributes, leader epoch, largest time stamp and record count of every batch, checksums checked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub base_offset: i64,
    pub control: bool,
    pub append_time: bool,
    pub newest: i64,
    pub producer: (i64, i16),
    pub count: i32,
}

pub(crate) fn read(mut bytes: &[u8]) -> Vec<Seen> {
    let mut seen = Vec::new();
    while bytes.len() >= 61 {
        let int = |at: usize| i32::from_be_bytes(bytes[at..at + 4].try_into().expect("four"));
        let long = |at: usize| i64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight"));
        let size = usize::try_from(int(8)).expect("a length") + 12;
        if size > bytes.len() {
            break;
        }
        assert_eq!(crc32c::crc32c(&bytes[21..size]), int(17).cast_unsigned(), "the checksum fits");
        seen.push(Seen {
            base_offset: long(0),
            control: bytes[22] & 0x20 != 0,
            append_time: bytes[22] & 0x08 != 0,
            newest: long(35),
            producer: (long(43), i16::from_be_bytes([bytes[51], bytes[52]])),
            count: int(57),
        });
        bytes = &bytes[size..];
    }
    seen
}
