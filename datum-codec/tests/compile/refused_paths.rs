use datum_codec::Projected;

#[derive(Projected)]
struct Twice {
    a: u64,
    #[projected(rename = "a")]
    again: u64,
}

#[derive(Projected)]
struct ValueAndObject {
    #[projected(path = "a.b")]
    inner: u64,
    a: u64,
}

#[derive(Projected)]
struct Empty {
    #[projected(path = "a..b")]
    gap: u64,
    #[projected(path = "")]
    nothing: u64,
}

#[derive(Projected)]
struct Both {
    #[projected(path = "a.b", rename = "c")]
    both: u64,
    #[projected(key = "d")]
    unknown: u64,
    #[projected(path = 7)]
    number: u64,
}

fn main() {}
