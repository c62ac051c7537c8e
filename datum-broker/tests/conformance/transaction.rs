//! Transactions of both protocols: epochs, fencing, markers, pending offsets.

use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use kafka_protocol::messages::{
    AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, EndTxnRequest, GroupId, InitProducerIdRequest,
    ProducerId, TransactionalId, TxnOffsetCommitRequest,
};

use crate::batch::{Batch, read};
use crate::client::{Client, settled, text, topic_name, until};
use crate::member::{Member, commit, committed};
use crate::target::Target;

crate::cases! {
    epochs_rise_and_fence
    what_is_held_may_be_raised
    odd_requests_are_refused
    a_commit_is_seen_when_its_marker_is_written
    an_abort_is_indexed
    the_oldest_open_transaction_holds_the_stable_offset
    a_write_must_belong_to_a_transaction
    an_end_is_decided_once
    a_new_holder_aborts_what_is_open
    a_transaction_ends_at_its_timeout
    offsets_wait_for_their_transaction
    a_transaction_takes_offsets_without_a_member
    offsets_of_a_member_are_checked
    the_second_protocol_adds_by_writing
    the_second_protocol_raises_the_epoch_with_each_end
    an_abort_of_nothing_raises_the_epoch
    a_commit_outside_comes_before_or_after_the_transactions
    a_transaction_may_span_topics
    sequences_inside_transactions_are_checked
}

/// Codes that pass while a coordinator loads, or the last transaction is being completed.
const PASSING: [i16; 4] = [14, 15, 16, 51];

struct Producer {
    client: Client,
    transactional: String,
    id: i64,
    epoch: i16,
    sequence: i32,
}

impl Producer {
    fn new(target: &Target) -> Self {
        Self::named(target, &target.name("txn"), 60_000)
    }

    fn named(target: &Target, transactional: &str, timeout: i32) -> Self {
        let mut client = target.client();
        client.coordinator(transactional, 1);
        let mut producer =
            Self { client, transactional: transactional.to_owned(), id: -1, epoch: -1, sequence: 0 };
        assert_eq!(settled("the producer is initialised", &PASSING, || producer.init(timeout)), 0);
        producer
    }

    fn init(&mut self, timeout: i32) -> i16 {
        self.init_held(timeout, -1, -1)
    }

    fn init_held(&mut self, timeout: i32, id: i64, epoch: i16) -> i16 {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(Some(TransactionalId(text(&self.transactional))))
            .with_transaction_timeout_ms(timeout)
            .with_producer_id(ProducerId(id))
            .with_producer_epoch(epoch);
        let answer = self.client.call(4, &request);
        if answer.error_code == 0 {
            (self.id, self.epoch, self.sequence) = (answer.producer_id.0, answer.producer_epoch, 0);
        }
        answer.error_code
    }

    fn add(&mut self, topic: &str, partitions: &[i32]) -> Vec<i16> {
        let topic = AddPartitionsToTxnTopic::default()
            .with_name(topic_name(topic))
            .with_partitions(partitions.to_vec());
        let request = AddPartitionsToTxnRequest::default()
            .with_v3_and_below_transactional_id(TransactionalId(text(&self.transactional)))
            .with_v3_and_below_producer_id(ProducerId(self.id))
            .with_v3_and_below_producer_epoch(self.epoch)
            .with_v3_and_below_topics(vec![topic]);
        let answer = self.client.call(3, &request);
        let results = &answer.results_by_topic_v3_and_below[0].results_by_partition;
        // They come in any order.
        partitions
            .iter()
            .map(|index| {
                results.iter().find(|result| result.partition_index == *index).expect("an answer for each")
            })
            .map(|result| result.partition_error_code)
            .collect()
    }

    fn begin(&mut self, topic: &str) {
        let code = settled("the partition is added", &PASSING, || self.add(topic, &[0])[0]);
        assert_eq!(code, 0);
    }

    /// One record, in this version of Produce.
    fn write(&mut self, version: i16, topic: &str) -> i16 {
        let batch = Batch::of(1).by(self.id, self.epoch, self.sequence).transactional().bytes();
        let transactional = self.transactional.clone();
        let code = self.client.produce_as(version, topic, Some(&transactional), batch).error_code;
        if code == 0 {
            self.sequence += 1;
        }
        code
    }

    fn end(&mut self, version: i16, commit: bool) -> i16 {
        let request = EndTxnRequest::default()
            .with_transactional_id(TransactionalId(text(&self.transactional)))
            .with_producer_id(ProducerId(self.id))
            .with_producer_epoch(self.epoch)
            .with_committed(commit);
        let answer = self.client.call(version, &request);
        if version >= 5 && answer.error_code == 0 {
            (self.id, self.epoch, self.sequence) = (answer.producer_id.0, answer.producer_epoch, 0);
        }
        answer.error_code
    }

    fn add_group(&mut self, group: &str) -> i16 {
        let request = AddOffsetsToTxnRequest::default()
            .with_transactional_id(TransactionalId(text(&self.transactional)))
            .with_producer_id(ProducerId(self.id))
            .with_producer_epoch(self.epoch)
            .with_group_id(GroupId(text(group)));
        settled("the group is added", &PASSING, || self.client.call(3, &request).error_code)
    }

    fn commit_offset(
        &mut self,
        version: i16,
        group: &str,
        member: (&str, i32),
        topic: &str,
        offset: i64,
    ) -> i16 {
        let partition = TxnOffsetCommitRequestPartition::default()
            .with_committed_offset(offset)
            .with_committed_leader_epoch(2)
            .with_committed_metadata(Some(text("state")));
        let topic = TxnOffsetCommitRequestTopic::default()
            .with_name(topic_name(topic))
            .with_partitions(vec![partition]);
        let request = TxnOffsetCommitRequest::default()
            .with_transactional_id(TransactionalId(text(&self.transactional)))
            .with_group_id(GroupId(text(group)))
            .with_producer_id(ProducerId(self.id))
            .with_producer_epoch(self.epoch)
            .with_generation_id(member.1)
            .with_member_id(text(member.0))
            .with_topics(vec![topic]);
        self.client.call(version, &request).topics[0].partitions[0].error_code
    }
}

/// Offsets of the data batches, and of the markers, that a reader of committed records is sent.
fn stable(target: &Target, topic: &str, offset: i64) {
    until("the stable offset rises", || {
        (target.client().fetch(topic, 0, true).last_stable_offset == offset).then_some(())
    });
}

fn epochs_rise_and_fence(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut old = Producer::new(target);
    assert_eq!(old.epoch, 0);
    let mut new = Producer::named(target, &old.transactional, 60_000);
    assert_eq!((new.id, new.epoch), (old.id, 1));
    assert_eq!(old.add(&topic, &[0]), [90]);
    assert_eq!(old.end(3, true), 90);
    assert_eq!(old.end(1, true), 47, "the older code for older clients");
    assert_eq!(old.end(5, true), 90);
    new.begin(&topic);
    assert_eq!(new.write(9, &topic), 0);
    assert_eq!(old.write(9, &topic), 47);
    assert_eq!(old.write(12, &topic), 47);
    assert_eq!(new.end(3, true), 0);
}

fn what_is_held_may_be_raised(target: &Target) {
    let mut producer = Producer::new(target);
    let (id, epoch) = (producer.id, producer.epoch);
    assert_eq!(producer.init_held(60_000, id, epoch), 0);
    assert_eq!((producer.id, producer.epoch), (id, 1));
    assert_eq!(producer.init_held(60_000, id, epoch), 0, "the same again");
    assert_eq!(producer.epoch, 1);
    let _newer = Producer::named(target, &producer.transactional, 60_000);
    assert_eq!(producer.init_held(60_000, id, 1), 90);
    assert_eq!(producer.init_held(60_000, id + 1_000_000, 1), 90);
}

fn odd_requests_are_refused(target: &Target) {
    let mut producer = Producer::new(target);
    assert_eq!(producer.init(i32::MAX), 50);
    assert_eq!(producer.init(0), 50);
    let topic = target.topic(1, &[]);
    assert_eq!(producer.add(&topic, &[0, 9]), [55, 3], "all or nothing");
    assert_eq!(producer.end(3, true), 48, "nothing is open");
    assert_eq!(producer.end(3, false), 48);
    let known = producer.id;
    producer.id += 1_000_000;
    assert_eq!(producer.add(&topic, &[0]), [49]);
    assert_eq!(producer.end(3, true), 49);
    producer.id = known;
    producer.transactional = target.name("unknown");
    assert_eq!(producer.add(&topic, &[0]), [49]);
    assert_eq!(producer.end(3, true), 49);
    producer.transactional = String::new();
    assert_eq!(producer.init(60_000), 42);
}

fn a_commit_is_seen_when_its_marker_is_written(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut producer = Producer::new(target);
    producer.begin(&topic);
    assert_eq!(producer.write(9, &topic), 0);
    assert_eq!(producer.write(9, &topic), 0);
    let mut client = target.client();
    let open = client.fetch(&topic, 0, true);
    assert_eq!((open.high_watermark, open.last_stable_offset), (2, 0));
    assert_eq!(open.records.map_or(0, |records| records.len()), 0);
    assert_eq!(read(&client.fetch(&topic, 0, false).records.expect("records")).len(), 2);
    assert_eq!(client.list_offset(&topic, -1, true).2, 0);
    assert_eq!(client.list_offset(&topic, -1, false).2, 2);
    assert_eq!(producer.end(3, true), 0);
    stable(target, &topic, 3);
    let done = client.fetch(&topic, 0, true);
    let batches = read(&done.records.expect("records"));
    assert_eq!(batches.iter().map(|batch| batch.control).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(batches[2].producer.0, producer.id);
    assert_eq!(done.aborted_transactions, Some(Vec::new()));
}

fn an_abort_is_indexed(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut producer = Producer::new(target);
    target.client().produce(&topic, Batch::of(1).bytes());
    producer.begin(&topic);
    assert_eq!(producer.write(9, &topic), 0);
    assert_eq!(producer.write(9, &topic), 0);
    assert_eq!(producer.end(3, false), 0);
    stable(target, &topic, 4);
    let mut client = target.client();
    let mut aborted = |from| {
        let told = client.fetch(&topic, from, true).aborted_transactions.unwrap_or_default();
        told.iter().map(|entry| (entry.producer_id.0, entry.first_offset)).collect::<Vec<_>>()
    };
    assert_eq!(aborted(0), [(producer.id, 1)]);
    assert_eq!(aborted(2), [(producer.id, 1)], "a reader may begin inside");
    producer.begin(&topic);
    assert_eq!(producer.write(9, &topic), 0);
    assert_eq!(producer.end(3, true), 0);
    stable(target, &topic, 6);
    assert_eq!(aborted(4), []);
}

fn the_oldest_open_transaction_holds_the_stable_offset(target: &Target) {
    let topic = target.topic(1, &[]);
    let (mut first, mut second) = (Producer::new(target), Producer::new(target));
    first.begin(&topic);
    second.begin(&topic);
    assert_eq!(first.write(9, &topic), 0);
    assert_eq!(second.write(9, &topic), 0);
    target.client().produce(&topic, Batch::of(1).bytes());
    assert_eq!(second.end(3, true), 0);
    until("the marker is written", || (target.client().list_offset(&topic, -1, false).2 == 4).then_some(()));
    assert_eq!(target.client().list_offset(&topic, -1, true).2, 0);
    assert_eq!(first.end(3, false), 0);
    stable(target, &topic, 5);
}

fn a_write_must_belong_to_a_transaction(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut producer = Producer::new(target);
    assert_eq!(producer.write(9, &topic), 48);
    assert_eq!(producer.write(11, &topic), 120);
    producer.begin(&topic);
    assert_eq!(producer.write(9, &topic), 0);
    assert_eq!(producer.end(3, true), 0);
    stable(target, &topic, 2);
    let ended = settled("the last one has ended", &[19], || producer.write(9, &topic));
    assert_eq!(ended, 48);
}

fn an_end_is_decided_once(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut producer = Producer::new(target);
    producer.begin(&topic);
    assert_eq!(producer.write(9, &topic), 0);
    assert_eq!(producer.end(3, true), 0);
    assert_eq!(settled("the markers are written", &PASSING, || producer.end(3, true)), 0, "asked again");
    assert_eq!(producer.end(3, false), 48);
    producer.begin(&topic);
    assert_eq!(producer.end(3, false), 0);
    assert_eq!(settled("the markers are written", &PASSING, || producer.end(3, false)), 0);
    assert_eq!(producer.end(3, true), 48);
}

fn a_new_holder_aborts_what_is_open(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut old = Producer::new(target);
    old.begin(&topic);
    assert_eq!(old.write(9, &topic), 0);
    let mut client = target.client();
    let request = InitProducerIdRequest::default()
        .with_transactional_id(Some(TransactionalId(text(&old.transactional))))
        .with_transaction_timeout_ms(60_000)
        .with_producer_id(ProducerId(-1))
        .with_producer_epoch(-1);
    assert_eq!(client.call(4, &request).error_code, 51, "the abort comes first");
    let new = Producer::named(target, &old.transactional, 60_000);
    assert_eq!((new.id, new.epoch), (old.id, 2), "one epoch for the abort, one for the holder");
    stable(target, &topic, 2);
    assert_eq!(client.fetch(&topic, 0, true).aborted_transactions.map(|list| list.len()), Some(1));
    assert_eq!(old.write(9, &topic), 47);
    assert_eq!(old.end(3, true), 90);
}

fn a_transaction_ends_at_its_timeout(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut producer = Producer::named(target, &target.name("txn"), 1_000);
    producer.begin(&topic);
    assert_eq!(producer.write(9, &topic), 0);
    stable(target, &topic, 2);
    assert_eq!(target.client().fetch(&topic, 0, true).aborted_transactions.map(|list| list.len()), Some(1));
    assert_eq!(producer.write(9, &topic), 47);
    assert_eq!(producer.end(3, true), 90);
    assert_eq!(producer.end(5, true), 48, "it looks like the last end again");
}

fn offsets_wait_for_their_transaction(target: &Target) {
    let topic = target.topic(1, &[]);
    let group = target.name("group");
    let mut producer = Producer::new(target);
    producer.client.coordinator(&group, 0);
    assert_eq!(producer.commit_offset(3, &group, ("", -1), &topic, 5), 48, "the group was not added");
    for (commit, offset, after) in [(false, 5, -1), (true, 6, 6), (false, 7, 6)] {
        assert_eq!(producer.add_group(&group), 0);
        assert_eq!(producer.commit_offset(3, &group, ("", -1), &topic, offset), 0);
        let mut client = target.client();
        assert_eq!(committed(&mut client, &group, &topic, true).0, 88);
        assert_eq!(committed(&mut client, &group, &topic, false).0, 0);
        assert_eq!(producer.end(3, commit), 0);
        let found = until("the offsets are stable", || {
            Some(committed(&mut client, &group, &topic, true)).filter(|found| found.0 == 0)
        });
        assert_eq!(found.1, after);
    }
    assert_eq!(committed(&mut target.client(), &group, &topic, true), (0, 6, 2, "state".to_owned()));
}

fn a_transaction_takes_offsets_without_a_member(target: &Target) {
    let topic = target.topic(1, &[]);
    let group = target.name("group");
    let _member = Member::alone(target, &group);
    let mut producer = Producer::new(target);
    assert_eq!(producer.add_group(&group), 0);
    assert_eq!(producer.commit_offset(3, &group, ("", -1), &topic, 5), 0, "beside a live member");
    assert_eq!(producer.end(3, true), 0);
    let mut client = target.client();
    until("the offset is there", || (committed(&mut client, &group, &topic, true).1 == 5).then_some(()));
}

fn offsets_of_a_member_are_checked(target: &Target) {
    let topic = target.topic(1, &[]);
    let group = target.name("group");
    let member = Member::alone(target, &group);
    let mut producer = Producer::new(target);
    assert_eq!(producer.add_group(&group), 0);
    let mut code = |who: (&str, i32)| producer.commit_offset(3, &group, who, &topic, 5);
    assert_eq!(code(("nobody", member.generation)), 25);
    assert_eq!(code((&member.id, member.generation - 1)), 22);
    assert_eq!(code((&member.id, member.generation)), 0);
    assert_eq!(producer.end(3, false), 0);
}

fn the_second_protocol_adds_by_writing(target: &Target) {
    let topic = target.topic(1, &[]);
    let group = target.name("group");
    let mut producer = Producer::new(target);
    producer.client.coordinator(&group, 0);
    assert_eq!(settled("the write begins it", &PASSING, || producer.write(12, &topic)), 0);
    let code =
        settled("the offsets join", &PASSING, || producer.commit_offset(5, &group, ("", -1), &topic, 4));
    assert_eq!(code, 0);
    assert_eq!(committed(&mut target.client(), &group, &topic, true).0, 88);
    assert_eq!(producer.end(5, true), 0);
    stable(target, &topic, 2);
    let mut client = target.client();
    until("the offset is there", || (committed(&mut client, &group, &topic, true).1 == 4).then_some(()));
}

fn the_second_protocol_raises_the_epoch_with_each_end(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut producer = Producer::new(target);
    for (n, commit) in (0i16..).zip([true, false, true]) {
        assert_eq!(producer.epoch, n);
        assert_eq!(settled("the write begins it", &PASSING, || producer.write(12, &topic)), 0);
        assert_eq!(producer.end(5, commit), 0);
    }
    assert_eq!(producer.epoch, 3);
    stable(target, &topic, 6);
    let markers: Vec<_> = read(&target.client().fetch(&topic, 0, true).records.expect("records"))
        .into_iter()
        .filter(|batch| batch.control)
        .map(|batch| batch.producer.1)
        .collect();
    assert_eq!(markers, [1, 2, 3], "markers carry the raised epoch");
    producer.epoch = 2;
    assert_eq!(producer.end(5, true), 0, "the last end again, its answer was lost");
    assert_eq!(producer.epoch, 3);
    producer.epoch = 2;
    assert_eq!(producer.end(5, false), 48);
    producer.epoch = 1;
    assert_eq!(producer.end(5, true), 90);
    producer.epoch = 2;
    assert_eq!(producer.write(12, &topic), 47, "the markers fenced the older epoch");
}

fn an_abort_of_nothing_raises_the_epoch(target: &Target) {
    let mut producer = Producer::new(target);
    assert_eq!(producer.end(5, true), 48);
    assert_eq!(producer.end(5, false), 0);
    assert_eq!(producer.epoch, 1);
    assert_eq!(settled("it is completed", &PASSING, || producer.end(5, false)), 0);
    assert_eq!(producer.epoch, 2);
}

fn a_commit_outside_comes_before_or_after_the_transactions(target: &Target) {
    let topic = target.topic(1, &[]);
    let group = target.name("group");
    let mut producer = Producer::new(target);
    let mut client = target.client();
    client.coordinator(&group, 0);
    assert_eq!(producer.add_group(&group), 0);
    assert_eq!(producer.commit_offset(3, &group, ("", -1), &topic, 5), 0);
    assert_eq!(commit(&mut client, &group, ("", -1), &topic, 9, ""), 0);
    assert_eq!(committed(&mut client, &group, &topic, false).1, 9);
    assert_eq!(producer.end(3, true), 0);
    let found = until("the offsets are stable", || {
        Some(committed(&mut client, &group, &topic, true)).filter(|found| found.0 == 0)
    });
    assert_eq!(found.1, 9, "the later commit stays");
}

fn a_transaction_may_span_topics(target: &Target) {
    let (one, two) = (target.topic(1, &[]), target.topic(1, &[]));
    let mut producer = Producer::new(target);
    producer.begin(&one);
    producer.begin(&two);
    assert_eq!(producer.write(9, &one), 0);
    producer.sequence = 0;
    assert_eq!(producer.write(9, &two), 0);
    assert_eq!(producer.end(3, true), 0);
    stable(target, &one, 2);
    stable(target, &two, 2);
}

fn sequences_inside_transactions_are_checked(target: &Target) {
    let topic = target.topic(1, &[]);
    let mut producer = Producer::new(target);
    assert_eq!(settled("the write begins it", &PASSING, || producer.write(12, &topic)), 0);
    producer.sequence = 5;
    assert_eq!(producer.write(12, &topic), 45, "a gap");
    producer.sequence = 0;
    assert_eq!(producer.write(12, &topic), 0, "the same again is no error");
    assert_eq!(target.client().list_offset(&topic, -1, false).2, 1);
    assert_eq!(producer.end(5, true), 0);
    stable(target, &topic, 2);
    producer.sequence = 1;
    assert_eq!(
        settled("the next one", &PASSING, || producer.write(12, &topic)),
        45,
        "a new epoch begins at 0"
    );
    producer.sequence = 0;
    assert_eq!(producer.write(12, &topic), 0);
    assert_eq!(producer.end(5, false), 0);
}
