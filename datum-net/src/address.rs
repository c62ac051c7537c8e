//! Addresses as users write them: `host:port`, `10.0.0.1:9092`, `[::1]:9092`, and lists of them separated by commas.
//!
//! Parsing never looks a name up; resolution happens at each dial, so that a moved service is found again.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// One `host:port`. The host is a name, an IPv4 literal or an IPv6 literal (kept without its brackets).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    host: Box<str>,
    port: u16,
}

impl Address {
    /// An address from its parts; `host` without brackets.
    pub fn new(host: &str, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    /// The name or literal, an IPv6 literal without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let text = text.trim();
        let (host, port) = split(text)?;
        if host.is_empty() {
            return Err(AddressError::NoHost { text: text.into() });
        }
        match port.parse() {
            Ok(0) | Err(_) => Err(AddressError::Port { text: text.into() }),
            Ok(port) => Ok(Self::new(host, port)),
        }
    }
}

/// At least one [`Address`]; what `bootstrap.servers` means.
///
/// ```
/// use datum_net::AddressList;
/// let list: AddressList = "kafka-1:9092, kafka-2:9092,[::1]:9092".parse()?;
/// assert_eq!(list.iter().count(), 3);
/// assert_eq!(list.to_string(), "kafka-1:9092,kafka-2:9092,[::1]:9092");
/// # Ok::<(), datum_net::AddressError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AddressList(Vec<Address>);

impl AddressList {
    /// The addresses in the order given.
    pub fn iter(&self) -> std::slice::Iter<'_, Address> {
        self.0.iter()
    }

    /// The addresses in the order given.
    pub fn as_slice(&self) -> &[Address] {
        &self.0
    }
}

impl From<Address> for AddressList {
    fn from(one: Address) -> Self {
        Self(vec![one])
    }
}

impl fmt::Display for AddressList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, address) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{address}")?;
        }
        Ok(())
    }
}

impl FromStr for AddressList {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let list: Vec<Address> = text
            .split(',')
            .filter(|part| !part.trim().is_empty())
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        if list.is_empty() { Err(AddressError::Empty) } else { Ok(Self(list)) }
    }
}

/// Why a text is not an address. Each names the text and the form that is expected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The list holds no address at all.
    #[error("no address given: write host:port, several separated by commas")]
    Empty,
    /// No host before the colon.
    #[error("`{text}` has no host: write host:port")]
    NoHost {
        /// What was given.
        text: Box<str>,
    },
    /// No port, or not a number from 1 to 65535.
    #[error("`{text}` has no port from 1 to 65535: write host:port")]
    Port {
        /// What was given.
        text: Box<str>,
    },
    /// An IPv6 literal without brackets, or with only one of them.
    #[error("`{text}` is an IPv6 address without brackets: write [address]:port")]
    Brackets {
        /// What was given.
        text: Box<str>,
    },
}

fn split(text: &str) -> Result<(&str, &str), AddressError> {
    if let Some(rest) = text.strip_prefix('[') {
        return rest.split_once("]:").ok_or_else(|| AddressError::Brackets { text: text.into() });
    }
    let (host, port) = text.rsplit_once(':').ok_or_else(|| AddressError::Port { text: text.into() })?;
    if host.contains(':') { Err(AddressError::Brackets { text: text.into() }) } else { Ok((host, port)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_and_both_kinds_of_literal() {
        for (text, host, port) in
            [("a.b:1", "a.b", 1), (" 10.0.0.1:9092 ", "10.0.0.1", 9092), ("[::1]:65535", "::1", 65535)]
        {
            let address: Address = text.parse().unwrap();
            assert_eq!((address.host(), address.port()), (host, port));
            assert_eq!(address.to_string(), text.trim());
        }
    }

    #[test]
    fn refuses_what_is_not_an_address_and_says_why() {
        let err = |text: &str| text.parse::<Address>().unwrap_err();
        assert!(matches!(err("localhost"), AddressError::Port { .. }));
        assert!(matches!(err("localhost:0"), AddressError::Port { .. }));
        assert!(matches!(err("localhost:65536"), AddressError::Port { .. }));
        assert!(matches!(err(":9092"), AddressError::NoHost { .. }));
        assert!(matches!(err("::1:9092"), AddressError::Brackets { .. }));
        assert!(matches!(err("[::1:9092"), AddressError::Brackets { .. }));
        assert_eq!(" , ".parse::<AddressList>().unwrap_err(), AddressError::Empty);
    }
}
