//! Decompression of anything, and round trips; the first byte chooses the codec.
#![no_main]

use datum_codec::compression::{Codec, Compressor, Decompressor};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1 << 20;

fuzz_target!(|input: &[u8]| {
    let Some((choice, data)) = input.split_first() else { return };
    let codec = Codec::ALL[usize::from(choice & 3)];
    let mut unpacker = Decompressor::new();
    let mut out = Vec::new();
    if let Ok(len) = unpacker.decompress(codec, data, &mut out, LIMIT) {
        assert!(len <= LIMIT);
    }
    assert!(out.capacity() <= 2 * LIMIT, "{} bytes for {}", out.capacity(), data.len());

    let mut packed = Vec::new();
    Compressor::new().compress(codec, None, data, &mut packed).expect("small inputs are compressed");
    let len = unpacker.decompress(codec, &packed, &mut out, LIMIT).expect("what was packed is unpacked");
    assert!(out[..len] == *data);
});
