use datum_codec::Projected;

#[derive(Projected)]
enum Choice {
    A,
}

#[derive(Projected)]
struct Pair(u64, u64);

#[derive(Projected)]
struct Nothing {}

#[derive(Projected)]
struct Generic<T> {
    value: T,
}

#[derive(Projected)]
struct TwoRecords<'a, 'b> {
    left: &'a str,
    right: &'b str,
}

fn main() {}
