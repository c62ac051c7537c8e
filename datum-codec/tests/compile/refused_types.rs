use datum_codec::Projected;

struct Mine;

#[derive(Projected)]
struct Record {
    list: Vec<u64>,
    letter: char,
    mine: Mine,
    maybe: Option<Mine>,
}

fn main() {}
