//! The task behind a producer: closes batches, sends them to the leaders of their partitions, tells each record's fate.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    sync::Arc,
};

use bytes::{Bytes, BytesMut};
use datum_codec::compression::Compressor;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};

use super::{
    Failure, ProducerIdentity,
    accumulator::Full,
    broker::{Done, Job, Terms, serve},
    handle::Shared,
    lane::{BatchId, Dispatch, Effect, Lane, LaneConfig, Outcome},
    ticket::Tickets,
};
use crate::{
    KafkaError, TopicPartition,
    cluster::Cluster,
    wire::ErrorCode,
    wire::batch::{BatchBuilder, BatchDecoder, BatchHeader, BatchSet, NewHeader, NewRecord, Seal},
};

/// What a producer asks of its sender.
pub(super) enum Command {
    /// The transaction coordinator's word on who we are. Lanes count from 0 under a new epoch.
    Adopt(ProducerIdentity),
    /// The version up to which Produce may be spoken.
    Version(i16),
    /// Gives up what has not been sent.
    Abort(oneshot::Sender<()>),
}

pub(super) struct Sender {
    shared: Arc<Shared>,
    cluster: Cluster,
    commands: mpsc::UnboundedReceiver<Command>,
    terms: Terms,
    identity: Option<ProducerIdentity>,
    /// Another identity is being asked for.
    asking: bool,
    lanes: BTreeMap<TopicPartition, Lane>,
    batches: HashMap<BatchId, Sealed>,
    brokers: HashMap<i32, Line>,
    done: mpsc::UnboundedReceiver<Done>,
    report: mpsc::UnboundedSender<Done>,
    identities: mpsc::UnboundedReceiver<Result<ProducerIdentity, KafkaError>>,
    tell_identity: mpsc::UnboundedSender<Result<ProducerIdentity, KafkaError>>,
    compressor: Compressor,
    refreshing: bool,
    refreshed: mpsc::UnboundedReceiver<()>,
    tell_refreshed: mpsc::UnboundedSender<()>,
}

struct Sealed {
    /// The batch it came from, itself unless that was split.
    origin: BatchId,
    bytes: Bytes,
    records: i32,
    tickets: Tickets,
    permits: usize,
}

struct Line {
    jobs: mpsc::UnboundedSender<(Job, Terms)>,
    in_flight: usize,
}

impl Sender {
    pub(super) fn new(
        shared: Arc<Shared>,
        cluster: Cluster,
        commands: mpsc::UnboundedReceiver<Command>,
        terms: Terms,
    ) -> Self {
        let (report, done) = mpsc::unbounded_channel();
        let (tell_identity, identities) = mpsc::unbounded_channel();
        let (tell_refreshed, refreshed) = mpsc::unbounded_channel();
        Self {
            shared,
            cluster,
            commands,
            terms,
            identity: None,
            asking: false,
            lanes: BTreeMap::new(),
            batches: HashMap::new(),
            brokers: HashMap::new(),
            done,
            report,
            identities,
            tell_identity,
            compressor: Compressor::new(),
            refreshing: false,
            refreshed,
            tell_refreshed,
        }
    }

    pub(super) async fn run(mut self) {
        let mut metadata = self.cluster.watch_metadata();
        let mut open = true;
        if self.numbered() && !self.transactional() {
            // Before the first record needs it.
            self.ask_identity();
        }
        loop {
            self.turn();
            let oldest = self.shared.announce();
            if !open && oldest == u64::MAX {
                return;
            }
            let wake = self.deadline();
            tokio::select! {
                biased;
                Some(done) = self.done.recv() => self.arrived(done),
                Some(identity) = self.identities.recv() => {
                    self.asking = false;
                    match identity {
                        Ok(identity) => self.adopt(identity),
                        Err(error) if error.is_retriable() => self.ask_identity(),
                        Err(error) => self.refused_identity(&error),
                    }
                }
                command = self.commands.recv(), if open => match command {
                    Some(command) => self.obey(command),
                    None => {
                        // Every handle is gone: what was accepted is still sent.
                        open = false;
                        self.shared.lock().closed = true;
                    }
                },
                () = self.shared.wake.notified() => {}
                Some(()) = self.refreshed.recv() => self.refreshing = false,
                changed = metadata.changed() => if changed.is_err() { return },
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Adopt(identity) => self.adopt(identity),
            Command::Version(version) => self.terms.max_version = version,
            Command::Abort(reply) => {
                self.collect(true);
                let mut effects = Vec::new();
                for lane in self.lanes.values_mut() {
                    effects.extend(lane.drop_waiting(Failure::Aborted));
                }
                self.carry_out(None, effects);
                let _ = reply.send(());
            }
        }
    }

    /// Everything that can be done without waiting.
    fn turn(&mut self) {
        let closing = self.shared.flushing() || self.shared.lock().closed;
        self.collect(closing);
        let now = Instant::now().into_std();
        let tps: Vec<TopicPartition> = self.lanes.keys().cloned().collect();
        for tp in &tps {
            if let Some(lane) = self.lanes.get_mut(tp) {
                let effects = lane.expire(now);
                self.carry_out(Some(tp), effects);
            }
        }
        if self.numbered()
            && !self.transactional()
            && self.lanes.values().any(|lane| !lane.is_idle() && lane.needs_identity())
        {
            self.ask_identity();
        }
        self.dispatch(now);
        // A lane without work is forgotten once its number series would start anew anyway.
        if self.transactional() && self.lanes.len() > 1_000 {
            self.lanes.retain(|_, lane| !lane.is_idle());
        }
    }

    /// Closes the batches that are due and puts them in line.
    fn collect(&mut self, all: bool) {
        let shared = self.shared.clone();
        let settings = &shared.settings;
        let now = Instant::now().into_std();
        let taken = shared.lock().take(now, settings.linger, settings.batch_bytes, all);
        for full in taken {
            let deadline = full.since + settings.delivery_timeout;
            let (id, tp) = (full.id, full.partition.clone());
            let records = i32::try_from(full.builder.len()).unwrap_or(i32::MAX);
            match self.seal(full) {
                Ok(sealed) => {
                    self.batches.insert(id, sealed);
                    self.lane(&tp).push(id, records, deadline);
                }
                Err((permits, tickets)) => {
                    tickets.failed(Failure::Refused(ErrorCode::InvalidRecord), false);
                    self.release(id, permits);
                }
            }
        }
    }

    fn seal(&mut self, mut full: Full) -> Result<Sealed, (usize, Tickets)> {
        let records = i32::try_from(full.builder.len()).unwrap_or(i32::MAX);
        let seal = self.stamp();
        match full.builder.close(&seal, &mut self.compressor) {
            Ok(bytes) => Ok(Sealed {
                origin: full.id,
                bytes: bytes.into(),
                records,
                tickets: full.tickets,
                permits: full.permits,
            }),
            Err(error) => {
                tracing::error!(%error, partition = %full.partition, "a batch cannot be closed");
                Err((full.permits, full.tickets))
            }
        }
    }

    fn stamp(&self) -> Seal {
        let settings = &self.shared.settings;
        Seal {
            codec: settings.compression,
            level: settings.compression_level,
            producer: None,
            transactional: self.transactional(),
        }
    }

    fn lane(&mut self, tp: &TopicPartition) -> &mut Lane {
        let settings = &self.shared.settings;
        let config = LaneConfig {
            idempotent: settings.idempotent,
            transactional: settings.transactional_id.is_some(),
            max_in_flight: settings.max_in_flight,
            retry_pause: settings.client.retry_backoff.initial,
        };
        match self.lanes.entry(tp.clone()) {
            std::collections::btree_map::Entry::Occupied(lane) => lane.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                let mut lane = Lane::new(config);
                if let Some(identity) = self.identity {
                    lane.adopt(identity);
                }
                place.insert(lane)
            }
        }
    }

    /// Sends what may be sent, the batches for one leader together.
    fn dispatch(&mut self, now: std::time::Instant) {
        let metadata = self.cluster.metadata();
        let limit = self.shared.settings.max_in_flight;
        let mut unled = false;
        loop {
            let mut jobs: BTreeMap<i32, Vec<(TopicPartition, BatchId, Bytes)>> = BTreeMap::new();
            for (tp, lane) in &mut self.lanes {
                if lane.is_idle() {
                    continue;
                }
                let Some(leader) = metadata.leadership(tp).and_then(|leadership| leadership.leader) else {
                    unled = true;
                    continue;
                };
                let busy = self.brokers.get(&leader).map_or(0, |line| line.in_flight);
                if busy >= limit {
                    continue;
                }
                if let Some(sent) = lane.next(now, leader)
                    && let Some(bytes) = stamped(&mut self.batches, sent)
                {
                    jobs.entry(leader).or_default().push((tp.clone(), sent.batch, bytes));
                }
            }
            if jobs.is_empty() {
                break;
            }
            for (broker, batches) in jobs {
                self.hand_over(broker, Job { batches });
            }
        }
        if unled {
            self.refresh();
        }
    }

    fn hand_over(&mut self, broker: i32, job: Job) {
        let line = match self.brokers.entry(broker) {
            Entry::Occupied(line) => line.into_mut(),
            Entry::Vacant(place) => {
                let (jobs, inbox) = mpsc::unbounded_channel();
                tokio::spawn(serve(self.cluster.clone(), broker, inbox, self.report.clone()));
                place.insert(Line { jobs, in_flight: 0 })
            }
        };
        line.in_flight += 1;
        // The other end lives as long as this one.
        let _ = line.jobs.send((job, self.terms.clone()));
    }

    fn arrived(&mut self, done: Done) {
        if let Some(line) = self.brokers.get_mut(&done.broker) {
            line.in_flight = line.in_flight.saturating_sub(1);
        }
        if done.broken {
            self.refresh();
        }
        let now = Instant::now().into_std();
        for (tp, batch, outcome) in done.outcomes {
            if matches!(outcome, Outcome::Refused { .. }) {
                tracing::debug!(partition = %tp, ?outcome, "a batch was refused");
            }
            if let Some(lane) = self.lanes.get_mut(&tp) {
                let effects = lane.outcome(now, batch, outcome);
                self.carry_out(Some(&tp), effects);
            }
        }
    }

    fn carry_out(&mut self, tp: Option<&TopicPartition>, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Acked { batch, offset } => {
                    if let Some(sealed) = self.batches.remove(&batch) {
                        sealed.tickets.written(offset);
                        self.release(sealed.origin, sealed.permits);
                    }
                }
                Effect::Failed { batch, why, possibly_written } => {
                    if let Some(sealed) = self.batches.remove(&batch) {
                        self.shared.note_failure(why);
                        sealed.tickets.failed(why, possibly_written);
                        self.release(sealed.origin, sealed.permits);
                    }
                }
                Effect::Split { batch } => {
                    if let Some(tp) = tp {
                        self.split(tp, batch);
                    }
                }
                Effect::Refresh => self.refresh(),
                Effect::NeedIdentity => self.ask_identity(),
            }
        }
    }

    /// Cuts a batch in two halves. A batch that cannot be read again is given up.
    fn split(&mut self, tp: &TopicPartition, batch: BatchId) {
        let Some(mut sealed) = self.batches.remove(&batch) else { return };
        let half = usize::try_from(sealed.records / 2).unwrap_or(0);
        let parts = match self.halve(&sealed.bytes, half) {
            Some([first, second]) => {
                let late = sealed.tickets.split_off(half);
                let first_permits = sealed.permits / 2;
                let rest = sealed.permits - first_permits;
                let early = std::mem::take(&mut sealed.tickets);
                let mut parts = Vec::with_capacity(2);
                for ((bytes, records), tickets, permits) in
                    [(first, early, first_permits), (second, late, rest)]
                {
                    let id = self.shared.lock().name(sealed.origin);
                    self.batches
                        .insert(id, Sealed { origin: sealed.origin, bytes, records, tickets, permits });
                    parts.push((id, records));
                }
                self.shared.lock().done(sealed.origin);
                parts
            }
            None => {
                self.batches.insert(batch, sealed);
                Vec::new()
            }
        };
        if let Some(lane) = self.lanes.get_mut(tp) {
            let effects = lane.split(batch, &parts);
            self.carry_out(Some(tp), effects);
        }
    }

    fn halve(&mut self, bytes: &Bytes, half: usize) -> Option<[(Bytes, i32); 2]> {
        let raw = BatchSet::new(bytes.clone()).next()?.ok()?;
        let whole = BatchDecoder::new().decode(&raw).ok()?;
        let seal = self.stamp();
        let mut builders = [BatchBuilder::new(), BatchBuilder::new()];
        for (i, record) in whole.iter().enumerate() {
            let headers: Vec<_> =
                record.headers().map(|header| NewHeader { key: header.key, value: header.value }).collect();
            let new = NewRecord {
                timestamp: record.timestamp(),
                key: record.key(),
                value: record.value(),
                headers: &headers,
            };
            builders[usize::from(i >= half)].append(&new).ok()?;
        }
        let mut close = |builder: &mut BatchBuilder| {
            let records = i32::try_from(builder.len()).ok()?;
            let bytes = builder.close(&seal, &mut self.compressor).ok()?;
            Some((Bytes::from(bytes), records))
        };
        let [first, second] = &mut builders;
        Some([close(first)?, close(second)?])
    }

    fn release(&self, batch: BatchId, permits: usize) {
        self.shared.buffer.add_permits(permits);
        self.shared.lock().done(batch);
    }

    fn adopt(&mut self, identity: ProducerIdentity) {
        self.identity = Some(identity);
        let transactional = self.transactional();
        let tps: Vec<TopicPartition> = self.lanes.keys().cloned().collect();
        for tp in tps {
            if let Some(lane) = self.lanes.get_mut(&tp)
                && (transactional || lane.needs_identity())
            {
                let effects = lane.adopt(identity);
                self.carry_out(Some(&tp), effects);
            }
        }
    }

    fn ask_identity(&mut self) {
        if std::mem::replace(&mut self.asking, true) {
            return;
        }
        let (cluster, tell) = (self.cluster.clone(), self.tell_identity.clone());
        tokio::spawn(async move {
            let identity = super::identity::idempotent(&cluster).await;
            if let Err(error) = &identity
                && error.is_retriable()
            {
                tracing::warn!(%error, "no producer id yet");
                tokio::time::sleep(cluster.settings().retry_backoff.max).await;
            }
            let _ = tell.send(identity);
        });
    }

    /// The cluster refuses for good: what waits for an identity fails now. What is sent later asks again.
    fn refused_identity(&mut self, error: &KafkaError) {
        let code = error.code().unwrap_or(ErrorCode::UnsupportedVersion);
        let mut effects = Vec::new();
        for lane in self.lanes.values_mut().filter(|lane| lane.needs_identity()) {
            effects.extend(lane.drop_waiting(Failure::Identity(code)));
        }
        tracing::error!(%error, batches = effects.len(), "the producer gets no id; what waits for it fails");
        self.carry_out(None, effects);
    }

    fn refresh(&mut self) {
        if std::mem::replace(&mut self.refreshing, true) {
            return;
        }
        let (cluster, tell) = (self.cluster.clone(), self.tell_refreshed.clone());
        tokio::spawn(async move {
            if let Err(error) = cluster.refresh().await {
                tracing::debug!(%error, "no metadata yet");
            }
            let _ = tell.send(());
        });
    }

    fn deadline(&self) -> Option<Instant> {
        let linger = self.shared.lock().due(self.shared.settings.linger);
        let lanes = self.lanes.values().filter_map(Lane::deadline).min();
        linger.into_iter().chain(lanes).min().map(Instant::from_std)
    }

    fn numbered(&self) -> bool {
        self.shared.settings.idempotent
    }

    fn transactional(&self) -> bool {
        self.shared.settings.transactional_id.is_some()
    }
}

/// The batch's bytes with its number in the header.
fn stamped(batches: &mut HashMap<BatchId, Sealed>, sent: Dispatch) -> Option<Bytes> {
    let sealed = batches.get_mut(&sent.batch)?;
    if let Some(producer) = sent.producer {
        let known = BatchHeader::read(&sealed.bytes).ok()?;
        let numbered = (known.producer_id, known.producer_epoch, known.base_sequence);
        if numbered != (producer.id, producer.epoch, producer.base_sequence) {
            let mut bytes = BytesMut::from(std::mem::take(&mut sealed.bytes));
            BatchHeader::assign_producer(&mut bytes, producer.id, producer.epoch, producer.base_sequence)
                .ok()?;
            sealed.bytes = bytes.freeze();
        }
    }
    Some(sealed.bytes.clone())
}
