use datum_codec::{Json, Projected};

#[derive(Projected)]
pub struct Owned {
    pub id: u64,
    #[projected(path = "a.b.c")]
    pub deep: Option<String>,
    #[projected(path = "a.b.d")]
    pub beside: i8,
    #[projected(rename = "a.b")]
    pub dotted: bool,
    pub r#type: f32,
}

#[derive(Projected)]
struct Borrowed<'record> {
    name: &'record str,
    other: std::borrow::Cow<'record, str>,
}

fn main() {
    let mut owned = Json::<Owned>::projected();
    let found = owned.decode(r#"{"id":1,"a":{"b":{"d":-1}},"a.b":true,"type":0.5}"#).unwrap();
    assert!(found.deep.is_none() && found.dotted && found.beside == -1 && found.r#type == 0.5 && found.id == 1);
    let mut borrowed = Json::<Borrowed<'_>>::projected();
    let length = borrowed.decode_with(r#"{"name":"a","other":"b"}"#, |b| b.name.len() + b.other.len());
    assert_eq!(length, Ok(2));
}
