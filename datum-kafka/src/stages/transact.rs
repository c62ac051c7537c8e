//! One transaction of the transactional sink: records, and the offsets they were made from.

use std::{collections::BTreeMap, time::Duration};

use super::transactional::Part;
use crate::{
    ErrorCode,
    consumer::{Acknowledgement, Member},
    group::{Offsets, Sent},
    producer::ProducerRecord,
    transaction::{TransactionError, TransactionalProducer},
};

/// How long the group may take to form the generation in which offsets are sent again.
const PATIENCE: Duration = Duration::from_secs(30);

/// Offsets that a transaction has taken over from the ledgers of members. Dropped before they are committed, they are given up.
struct Claims(Vec<(Member, Offsets, Sent)>);

impl Claims {
    /// Takes the offsets of these acknowledgements over, and what else is to be committed of `members`.
    fn take(acks: &[Acknowledgement], members: &[Member]) -> Result<Self, TransactionError> {
        let mut claims = Self(Vec::with_capacity(members.len()));
        for member in members {
            let mut taken = BTreeMap::new();
            for ack in acks.iter().filter(|ack| ack.member() == *member) {
                let entry =
                    taken.entry(ack.handle().partition().clone()).or_insert((ack.epoch(), ack.next_offset()));
                // Of two assignments the older one is lost, and makes the claim fail.
                *entry = (entry.0.min(ack.epoch()), entry.1.max(ack.next_offset()));
            }
            let claimed = member.group().ledger().claim(&taken);
            let (offsets, sent) = claimed.map_err(|_| lost(member))?;
            claims.0.push((member.clone(), offsets, sent));
        }
        Ok(claims)
    }

    fn committed(mut self) {
        for (member, _, sent) in self.0.drain(..) {
            member.group().ledger().claim_committed(&sent);
            member.ledger_changed();
        }
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        for (member, _, sent) in &self.0 {
            member.group().ledger().claim_failed(sent);
            member.ledger_changed();
        }
    }
}

/// One transaction. After an error that leaves it open it is aborted, and the error is what counts.
///
/// The transactional id is taken over before the first one: by then a member that takes part has its assignment, so a process that stands by
/// throws nobody out.
pub(super) async fn transact(
    mut producer: TransactionalProducer,
    parts: Vec<Part>,
    members: Vec<Member>,
) -> Result<TransactionalProducer, TransactionError> {
    if producer.identity().is_none() {
        producer.init().await?;
    }
    producer.begin().await?;
    let (records, acks): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let acks: Vec<Acknowledgement> = acks.into_iter().flatten().collect();
    let filled = async {
        let claims = Claims::take(&acks, &members)?;
        fill(&mut producer, records, &claims).await?;
        claims.committed();
        Ok(())
    };
    if let Err(error) = filled.await {
        if let Err(second) = producer.abort().await {
            tracing::warn!(%second, "a transaction could not be aborted; the coordinator will");
        }
        return Err(error);
    }
    Ok(producer)
}

async fn fill(
    producer: &mut TransactionalProducer,
    records: Vec<ProducerRecord>,
    claims: &Claims,
) -> Result<(), TransactionError> {
    for record in records {
        drop(producer.send(record).await?);
    }
    for (member, offsets, sent) in &claims.0 {
        send_offsets(producer, member, offsets, sent).await?;
    }
    producer.commit().await
}

/// Sends offsets in the member's present name, and again in its next one where the group went on meanwhile.
async fn send_offsets(
    producer: &mut TransactionalProducer,
    member: &Member,
    offsets: &Offsets,
    sent: &Sent,
) -> Result<(), TransactionError> {
    if offsets.is_empty() {
        return Ok(());
    }
    let group = member.group();
    let mut than = -1;
    loop {
        let identity = group.identity_after(than, PATIENCE).await.map_err(|_| lost(member))?;
        // Looked at after the generation: what is given up later ends that generation, and the broker refuses it.
        // Records of a partition that has gone meanwhile are its next owner's to process.
        if !group.ledger().holds(sent) {
            return Err(lost(member));
        }
        match producer.send_offsets(offsets, &identity).await {
            Err(TransactionError::Generation { code: ErrorCode::IllegalGeneration, .. }) => {
                than = identity.generation;
            }
            other => return other,
        }
    }
}

fn lost(member: &Member) -> TransactionError {
    TransactionError::Generation { group: member.group().name().clone(), code: ErrorCode::UnknownMemberId }
}
