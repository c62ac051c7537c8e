//! The coordinator in virtual time.

use crate::code::Code;
use crate::txn::{InitRequest, Member, Producer, Transactions, TxnSettings};

const DELAY: i64 = 50;
const TIMEOUT: i64 = 1_000;

fn coordinator() -> Transactions {
    Transactions::new(TxnSettings { max_timeout: 60_000, marker_delay: DELAY })
}

fn request(held: Option<Producer>) -> InitRequest<'static> {
    InitRequest { id: Some("t"), timeout: TIMEOUT, held }
}

const P0: Member<'static> = Member::Partition("topic", 0);

#[test]
fn markers_follow_the_answer_after_their_delay() {
    let mut txns = coordinator();
    let producer = txns.init(request(None), 0).expect("new");
    txns.add("t", producer, &[P0, Member::Group("g")], 10).expect("it begins");
    assert_eq!(txns.deadline(), Some(10 + TIMEOUT));
    assert_eq!(txns.end("t", producer, true, false, 20), Ok(producer));
    assert_eq!(txns.end("t", producer, true, false, 30), Err(Code::ConcurrentTransactions));
    assert_eq!(txns.end("t", producer, false, false, 30), Err(Code::InvalidTxnState));
    assert_eq!(txns.add("t", producer, &[P0], 30), Err(Code::ConcurrentTransactions));
    assert_eq!(txns.init(request(None), 30), Err(Code::ConcurrentTransactions));
    assert_eq!(txns.deadline(), Some(20 + DELAY));
    assert_eq!(txns.tick(20 + DELAY - 1), []);
    let markers = txns.tick(20 + DELAY);
    assert_eq!(markers.len(), 1);
    assert!(markers[0].commit && markers[0].producer == producer);
    assert_eq!((markers[0].partitions.len(), markers[0].groups.len()), (1, 1));
    assert_eq!(txns.deadline(), None);
    assert_eq!(txns.end("t", producer, true, false, 100), Ok(producer), "asked again");
}

#[test]
fn a_timeout_aborts_and_fences() {
    let mut txns = coordinator();
    let producer = txns.init(request(None), 0).expect("new");
    txns.add("t", producer, &[P0], 0).expect("it begins");
    assert_eq!(txns.tick(TIMEOUT - 1), []);
    assert_eq!(txns.tick(TIMEOUT), [], "decided, not written");
    let markers = txns.tick(TIMEOUT + DELAY);
    assert!(!markers[0].commit);
    assert_eq!(markers[0].producer.epoch, producer.epoch + 1);
    assert_eq!(txns.end("t", producer, true, false, 2_000), Err(Code::ProducerFenced));
    assert_eq!(
        txns.end("t", producer, true, true, 2_000),
        Err(Code::InvalidTxnState),
        "it looks like a repeated end"
    );
    assert_eq!(txns.init(request(Some(producer)), 2_000), Err(Code::ProducerFenced));
    assert_eq!(txns.init(request(None), 2_000).map(|next| next.epoch), Ok(2));
}

#[test]
fn a_repeated_end_of_the_second_protocol_is_told_from_the_next() {
    let mut txns = coordinator();
    let first = txns.init(request(None), 0).expect("new");
    txns.add("t", first, &[P0], 0).expect("it begins");
    let second = txns.end("t", first, true, true, 0).expect("decided");
    assert_eq!(second, Producer { epoch: 1, ..first });
    assert_eq!(txns.end("t", first, true, true, 0), Err(Code::ConcurrentTransactions), "the answer was lost");
    assert_eq!(txns.end("t", second, true, true, 0), Err(Code::ProducerFenced), "too early for the next");
    assert_eq!(txns.tick(DELAY)[0].producer, second);
    assert_eq!(txns.end("t", first, true, true, 60), Ok(second), "the answer was lost");
    assert_eq!(txns.end("t", first, false, true, 60), Err(Code::InvalidTxnState));
    assert_eq!(txns.end("t", second, true, true, 60), Err(Code::InvalidTxnState), "nothing is open");
}

#[test]
fn the_last_epoch_is_followed_by_a_fresh_id() {
    let mut txns = coordinator();
    let mut producer = txns.init(request(None), 0).expect("new");
    let first = producer.id;
    let mut now = 0;
    while producer.id == first {
        txns.add("t", producer, &[P0], now).expect("it begins");
        let last = producer;
        producer = txns.end("t", producer, true, true, now).expect("decided");
        now += DELAY;
        let marker = txns.tick(now).remove(0);
        assert_eq!(
            marker.producer,
            Producer { id: last.id, epoch: last.epoch + 1 },
            "the old id, one epoch on"
        );
        if producer.id != first {
            assert_eq!((last.epoch, producer.epoch), (i16::MAX - 1, 0));
            assert_eq!(txns.end("t", last, true, true, now), Ok(producer), "the answer was lost");
        }
    }
    txns.add("t", producer, &[P0], now).expect("the fresh id goes on");
    let mut plain = coordinator();
    let mut held = plain.init(request(None), 0).expect("new");
    for _ in 0..i16::MAX {
        held = plain.init(request(None), 0).expect("raised");
    }
    assert_ne!(held.id, 0, "InitProducerId rotates as well");
}

#[test]
fn a_producer_that_is_only_idempotent_gets_an_id_of_its_own() {
    let mut txns = coordinator();
    let idempotent = InitRequest { id: None, timeout: -1, held: None };
    let (a, b) = (txns.init(idempotent, 0).expect("always"), txns.init(idempotent, 0).expect("always"));
    assert_ne!(a.id, b.id);
    assert_eq!((a.epoch, b.epoch), (0, 0));
}
