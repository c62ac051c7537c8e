use datum_codec::{Json, Projected};

#[derive(Projected)]
struct Borrowed<'a> {
    name: &'a str,
}

#[derive(Projected)]
struct Lasting {
    name: &'static str,
}

fn main() {
    let mut decoder = Json::<Borrowed<'_>>::projected();
    let kept = decoder.decode(r#"{"name":"a"}"#);
    let escaped = decoder.decode_with(r#"{"name":"a"}"#, |borrowed| borrowed.name);
    let _ = Json::<u64>::projected();
}
