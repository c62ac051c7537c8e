//! Which versions of which requests a broker speaks: the first exchange on every connection.
//!
//! Asked at version 3 (with the client's name, KIP-511). A broker that does not know that version answers with
//! `UNSUPPORTED_VERSION` *in the format of version 0*, and is then asked again at version 0. The answer is read here by hand:
//! it is the one response whose version is not known in advance.

use std::collections::BTreeMap;

use crate::error::ErrorCode;
use crate::wire::WireError;
use crate::wire::reader::Reader;
use crate::wire::writer::Writer;

pub(super) const KEY: i16 = 18;
pub(super) const NAME: &str = "ApiVersions";
const FIRST_TRY: i16 = 3;

/// What a broker offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiVersions {
    ranges: BTreeMap<i16, (i16, i16)>,
    features: BTreeMap<Box<str>, i16>,
}

impl ApiVersions {
    /// The lowest and highest version the broker speaks of the request with this key.
    pub fn range(&self, api_key: i16) -> Option<(i16, i16)> {
        self.ranges.get(&api_key).copied()
    }

    /// The highest version of the request both sides speak, ours from `min` to `max`.
    pub fn best(&self, api_key: i16, min: i16, max: i16) -> Option<i16> {
        let (low, high) = self.range(api_key)?;
        let best = high.min(max);
        (best >= low.max(min)).then_some(best)
    }

    /// The finalised level of a cluster feature (KIP-584), such as `transaction.version`.
    pub fn feature(&self, name: &str) -> Option<i16> {
        self.features.get(name).copied()
    }
}

/// The first request, and its version.
pub(super) fn first_request(out: &mut Vec<u8>) -> Result<i16, WireError> {
    let mut w = Writer::new(out, true);
    w.string("client software name", "datum")?;
    w.string("client software version", env!("CARGO_PKG_VERSION"))?;
    w.no_tagged_fields();
    Ok(FIRST_TRY)
}

/// What the broker made of the request.
pub(super) enum Outcome {
    Versions(ApiVersions),
    /// Ask again at version 0.
    TooNew,
    Refused(ErrorCode),
}

/// Reads a response to a request of `version`; the response header of this API never has tagged fields.
pub(super) fn read(body: &[u8], version: i16) -> Result<Outcome, WireError> {
    let code = ErrorCode::from(Reader::new(body, false).i16("error code")?);
    if version > 0 && code == ErrorCode::UnsupportedVersion {
        return Ok(Outcome::TooNew);
    }
    if !code.is_ok() {
        return Ok(Outcome::Refused(code));
    }
    let flexible = version >= 3;
    let mut r = Reader::new(body, flexible);
    r.i16("error code")?;
    let mut versions = ApiVersions::default();
    for _ in 0..r.array("api keys", 6)? {
        let key = r.i16("api key")?;
        versions.ranges.insert(key, (r.i16("min version")?, r.i16("max version")?));
        if flexible {
            r.skip_tagged_fields("api key")?;
        }
    }
    if version >= 1 {
        r.i32("throttle time")?;
    }
    if flexible {
        let features = &mut versions.features;
        r.tagged_fields("api versions", |tag, r| {
            if tag != 2 {
                return Ok(false);
            }
            for _ in 0..r.array("finalized features", 6)? {
                let name = r.string("feature name")?;
                let max = r.i16("max level")?;
                r.i16("min level")?;
                r.skip_tagged_fields("feature")?;
                features.insert(name.into(), max);
            }
            Ok(true)
        })?;
    }
    Ok(Outcome::Versions(versions))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_highest_version_both_speak() {
        let versions = ApiVersions { ranges: [(1, (4, 16)), (9, (0, 1))].into(), ..Default::default() };
        assert_eq!(versions.best(1, 4, 18), Some(16));
        assert_eq!(versions.best(1, 4, 12), Some(12));
        assert_eq!(versions.best(1, 17, 18), None);
        assert_eq!(versions.best(9, 2, 9), None);
        assert_eq!(versions.best(77, 0, 9), None);
    }

    #[test]
    fn reads_the_answer_of_an_old_broker() {
        assert!(matches!(read(&[0, 35, 0, 0, 0, 0], 3), Ok(Outcome::TooNew)));
        let body = [0, 0, 0, 0, 0, 1, 0, 3, 0, 0, 0, 2];
        let Ok(Outcome::Versions(versions)) = read(&body, 0) else { panic!("not read") };
        assert_eq!(versions.range(3), Some((0, 2)));
    }

    #[test]
    fn refuses_a_count_beyond_the_bytes() {
        assert!(read(&[0, 0, 0x7f, 0xff, 0xff, 0xff], 0).is_err());
    }

    #[test]
    fn reads_finalised_features_and_steps_over_unknown_tags() {
        let mut body = vec![0, 0, 2, 0, 1, 0, 4, 0, 17, 0, 0, 0, 0, 0, 2];
        body.extend([1, 1, 9]); // an unknown tag with one byte
        let name = b"transaction.version";
        body.extend([2, u8::try_from(2 + name.len() + 5).unwrap(), 2, u8::try_from(name.len() + 1).unwrap()]);
        body.extend(name);
        body.extend([0, 2, 0, 0, 0]);
        let Ok(Outcome::Versions(versions)) = read(&body, 3) else { panic!("not read") };
        assert_eq!(versions.feature("transaction.version"), Some(2));
        assert_eq!(versions.range(1), Some((4, 17)));
    }
}
