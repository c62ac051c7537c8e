//! The task behind a [`Group`](super::Group): feeds the membership machine and sends what it asks for.

use std::{
    collections::{BTreeMap, VecDeque},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use kafka_protocol::messages::OffsetCommitResponse;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until, timeout},
};

use super::{
    CommitError, GroupEvent, GroupIdentity, Ledger, Offsets, Sent, calls,
    handle::{Command, Ended, Standing, What},
    membership::{
        CallId, Counts, Event, Membership, MembershipConfig, Output, Phase, Request, Response, Trouble,
    },
};
use crate::{
    cluster::{Cluster, CoordinatorKind, Purpose},
    connection::Connection,
    error::Result,
    wire::ErrorCode,
};

pub(super) struct Task {
    cluster: Cluster,
    machine: Membership,
    ledger: Arc<Mutex<Ledger>>,
    inbox: mpsc::UnboundedReceiver<Command>,
    outbox: mpsc::UnboundedSender<GroupEvent>,
    standing: watch::Sender<Standing>,
    group: Arc<str>,
    connection: Option<Connection>,
    /// The JoinGroup that the coordinator may be holding back, and with it every answer on its connection.
    joining: Option<CallId>,
    answers: FuturesUnordered<Pin<Box<dyn Future<Output = Heard> + Send>>>,
    /// Commits that wait for a generation to be sent in, or for the one before them.
    waiting: VecDeque<Commit>,
    committing: Option<UnderWay>,
    /// No commit is sent before this, after one that may be tried again.
    pause: Option<Instant>,
    confirming: Vec<oneshot::Sender<i32>>,
    epochs: u64,
}

/// What came back.
enum Heard {
    Coordinator(CallId, Result<Connection>),
    Answer(CallId, Response),
    Commit(Result<OffsetCommitResponse>),
    Topics(Result<()>),
}

struct Commit {
    what: What,
    until: Instant,
    reply: oneshot::Sender<Result<(), CommitError>>,
}

struct UnderWay {
    commit: Commit,
    sent: Sent,
    generation: i32,
    member_id: String,
}

impl Task {
    pub(super) fn new(
        cluster: Cluster,
        machine: Membership,
        ledger: Arc<Mutex<Ledger>>,
        inbox: mpsc::UnboundedReceiver<Command>,
        outbox: mpsc::UnboundedSender<GroupEvent>,
        standing: watch::Sender<Standing>,
    ) -> Self {
        let group = machine.config().group.as_str().into();
        Self {
            cluster,
            machine,
            ledger,
            inbox,
            outbox,
            standing,
            group,
            connection: None,
            joining: None,
            answers: FuturesUnordered::new(),
            waiting: VecDeque::new(),
            committing: None,
            pause: None,
            confirming: Vec::new(),
            epochs: 0,
        }
    }

    pub(super) async fn run(mut self) {
        let mut metadata = self.cluster.watch_metadata();
        self.require(self.machine.config().topics.clone());
        self.machine.start(now());
        let mut listens = true;
        loop {
            self.act().await;
            if matches!(self.machine.phase(), Phase::Closed | Phase::Failed) {
                break;
            }
            let tick = self.machine.deadline().map(Instant::from_std);
            let expiry = self.waiting.iter().map(|commit| commit.until).min();
            let pause = self.pause.filter(|_| !self.waiting.is_empty());
            let wake = tick.into_iter().chain(expiry).chain(pause).min();
            tokio::select! {
                // Answers before the clock: a late task must not take its own lateness for silence.
                biased;
                Some(heard) = self.answers.next() => self.hear(heard),
                command = self.inbox.recv(), if listens => match command {
                    Some(command) => self.obey(command),
                    None => {
                        // Said once: a closed inbox is ready for ever, and the goodbye may have to wait for its answer.
                        listens = false;
                        self.machine.leave(now(), now());
                    }
                },
                changed = metadata.changed() => {
                    if changed.is_ok() {
                        self.counts();
                    }
                }
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => self.machine.tick(now()),
            }
        }
        // What was sent as a goodbye still has to leave.
        let limit = self.machine.config().request_timeout;
        if self.machine.phase() == Phase::Failed {
            let _ = timeout(limit, async { while self.answers.next().await.is_some() {} }).await;
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Drained(drain) => self.machine.drained(now(), drain),
            Command::Commit { what, until, reply } => self.waiting.push_back(Commit { what, until, reply }),
            Command::Confirm { reply } => {
                self.confirming.push(reply);
                self.machine.confirm(now());
            }
            Command::Subscribe(topics) => {
                self.require(topics.clone());
                self.machine.subscribe(now(), topics);
            }
            Command::Rejoin(reason) => self.machine.rejoin(now(), reason),
            Command::Refused { code, generation, member_id } => {
                self.machine.commit_refused(now(), code, generation, &member_id);
            }
            Command::Leave { by } => self.machine.leave(now(), by.into_std()),
        }
    }

    fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Coordinator(call, Ok(connection)) => {
                self.connection = Some(connection);
                self.machine.answered(now(), call, Response::Coordinator(0));
            }
            Heard::Coordinator(call, Err(error)) => {
                tracing::debug!(group = %self.group, %error, "no coordinator yet");
                self.machine.answered(now(), call, calls::failed(&error));
            }
            Heard::Answer(call, response) => {
                self.joining = self.joining.filter(|joining| *joining != call);
                self.machine.answered(now(), call, response);
            }
            Heard::Commit(answer) => self.committed(answer),
            Heard::Topics(known) => {
                if let Err(error) = known {
                    tracing::warn!(group = %self.group, %error, "not all topics of the group are known");
                }
                self.counts();
            }
        }
    }

    /// Does everything the machine asks for, then sends what commits can be sent.
    async fn act(&mut self) {
        loop {
            while let Some(output) = self.machine.poll() {
                match output {
                    Output::Send { call, request, timeout, .. } => self.send(call, request, timeout).await,
                    Output::Tell(event) => self.pass_on(event),
                }
            }
            self.announce();
            if !self.next_commit().await {
                return;
            }
        }
    }

    async fn send(&mut self, call: CallId, request: Request, limit: std::time::Duration) {
        tracing::trace!(group = %self.group, ?call, ?request, "asks");
        if request == Request::FindCoordinator {
            self.connection = None;
            self.cluster.forget_coordinator(CoordinatorKind::Group, &self.group);
            let (cluster, group) = (self.cluster.clone(), self.group.clone());
            return self.answers.push(Box::pin(async move {
                let found = timeout(limit, cluster.coordinator(CoordinatorKind::Group, &group)).await;
                match found {
                    Ok(found) => Heard::Coordinator(call, found),
                    Err(_) => Heard::Answer(call, Response::Trouble(Trouble::Unreachable)),
                }
            }));
        }
        if self.joining.is_some() && matches!(request, Request::Leave { .. }) {
            return self.leave_aside(call, request, limit);
        }
        if matches!(request, Request::Join { .. }) {
            self.joining = Some(call);
        }
        let answer = match self.connection.clone() {
            Some(connection) => start(&connection, self.machine.config().clone(), request).await,
            None => Err(Response::Trouble(Trouble::Unreachable)),
        };
        let answer = answer.unwrap_or_else(|response| futures_util::future::ready(response).boxed());
        self.answers.push(Box::pin(async move {
            let response = timeout(limit, answer).await;
            let gone = Response::Trouble(Trouble::Unreachable);
            Heard::Answer(call, response.unwrap_or(gone))
        }));
    }

    /// Says goodbye over the other connection to the coordinator. It answers the requests of one connection in order, and a join that is held
    /// back is answered when all members have joined again: minutes, if one of them drains.
    fn leave_aside(&mut self, call: CallId, request: Request, limit: std::time::Duration) {
        let (cluster, group, config) =
            (self.cluster.clone(), self.group.clone(), self.machine.config().clone());
        self.answers.push(Box::pin(async move {
            let said = async {
                let found = cluster.coordinator_for(CoordinatorKind::Group, &group, Purpose::Data).await;
                let connection = found.map_err(|error| calls::failed(&error))?;
                Ok::<_, Response>(start(&connection, config, request).await?.await)
            };
            let gone = Response::Trouble(Trouble::Unreachable);
            let response = timeout(limit, said).await.map(|said| said.unwrap_or_else(|trouble| trouble));
            Heard::Answer(call, response.unwrap_or(gone))
        }));
    }

    fn pass_on(&mut self, event: Event) {
        let event = match event {
            Event::Assigned(assigned) => {
                self.epochs += 1;
                let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
                for partition in &assigned.added {
                    ledger.open(partition.clone(), self.epochs);
                }
                drop(ledger);
                GroupEvent::Assigned { assigned, epoch: self.epochs }
            }
            Event::Revoke(revoke) => GroupEvent::Revoke(revoke),
            Event::Revoked { partitions } => {
                self.close(&partitions);
                GroupEvent::Revoked { partitions }
            }
            Event::Lost { partitions, reason } => {
                self.close(&partitions);
                self.standing.send_modify(|standing| {
                    standing.identity = None;
                    standing.losses += 1;
                });
                tracing::warn!(group = %self.group, ?reason, "lost the place in the group");
                GroupEvent::Lost { partitions, reason }
            }
            Event::Confirmed { generation } => {
                for reply in self.confirming.drain(..) {
                    let _ = reply.send(generation);
                }
                return;
            }
            Event::NeedMetadata { topics } => {
                return self.require(topics);
            }
            Event::CommitAs { .. } => return,
            Event::Left => {
                self.end(Ended::Left);
                GroupEvent::Left
            }
            Event::Failed(error) => {
                self.end(Ended::Failed(error.clone()));
                GroupEvent::Failed(error)
            }
        };
        // An owner that no longer listens misses nothing it would act on.
        let _ = self.outbox.send(event);
    }

    fn close(&self, partitions: &std::collections::BTreeSet<crate::TopicPartition>) {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        for partition in partitions {
            ledger.close(partition);
        }
    }

    fn end(&mut self, ended: Ended) {
        self.standing.send_modify(|standing| {
            standing.identity = None;
            standing.ended = Some(ended);
        });
        self.confirming.clear();
        for commit in self.waiting.drain(..) {
            let _ = commit.reply.send(Err(CommitError::Ended));
        }
    }

    /// Tells those who wait under which name commits are accepted now.
    fn announce(&self) {
        let config = self.machine.config();
        let identity = self.machine.commit_as().map(|(generation, member_id)| GroupIdentity {
            group: self.group.clone(),
            member_id: member_id.into(),
            generation,
            instance_id: config.instance_id.as_deref().map(Into::into),
        });
        self.standing.send_if_modified(|standing| {
            let changed = standing.identity != identity;
            standing.identity = identity;
            changed
        });
    }

    /// Keeps metadata of these topics; the machine hears when it was asked for.
    fn require(&self, topics: std::collections::BTreeSet<Arc<str>>) {
        let cluster = self.cluster.clone();
        self.answers.push(Box::pin(async move { Heard::Topics(cluster.require_topics(topics).await) }));
    }

    fn counts(&mut self) {
        let metadata = self.cluster.metadata();
        let counts: Counts = metadata
            .topics
            .iter()
            .filter(|(_, topic)| !topic.partitions.is_empty())
            .filter_map(|(name, topic)| Some((name.clone(), i32::try_from(topic.partitions.len()).ok()?)))
            .collect::<BTreeMap<_, _>>();
        self.machine.metadata(now(), counts);
    }

    // commits

    /// Sends the next commit if there is one and it may be sent now. Whether the machine has to be asked again.
    async fn next_commit(&mut self) -> bool {
        let at = Instant::now();
        self.waiting.retain_mut(|commit| commit.until > at && !commit.reply.is_closed());
        self.pause = self.pause.filter(|pause| *pause > at);
        let free = self.committing.is_none() && self.pause.is_none();
        let (Some((generation, member_id)), Some(connection), true) =
            (self.machine.commit_as().map(|(g, m)| (g, m.to_owned())), self.connection.clone(), free)
        else {
            return false;
        };
        let Some(commit) = self.waiting.pop_front() else { return false };
        let (offsets, sent) = match self.collect(&commit.what) {
            Ok(found) => found,
            Err(error) => {
                let _ = commit.reply.send(Err(error));
                return true;
            }
        };
        if offsets.is_empty() {
            let _ = commit.reply.send(Ok(()));
            return true;
        }
        let call = calls::commit(self.machine.config(), &member_id, generation, &offsets);
        let started = connection.start(&call).await;
        self.committing = Some(UnderWay { commit, sent, generation, member_id });
        match started {
            Ok(answer) => {
                let limit = self.machine.config().request_timeout;
                self.answers.push(Box::pin(async move {
                    match timeout(limit, answer).await {
                        Ok(answer) => Heard::Commit(answer),
                        Err(_) => Heard::Commit(Err(crate::KafkaErrorKind::Shutdown.into())),
                    }
                }));
                false
            }
            Err(error) => {
                self.committed(Err(error));
                true
            }
        }
    }

    /// What to send, of partitions that are this member's at this moment.
    fn collect(&self, what: &What) -> Result<(Offsets, Sent), CommitError> {
        let owned = self.machine.owned();
        match what {
            What::Given(offsets) => match offsets.keys().find(|partition| !owned.contains(*partition)) {
                Some(partition) => Err(CommitError::NotOwned { partition: partition.clone() }),
                None => Ok((offsets.clone(), Sent::default())),
            },
            What::Dirty(only) => {
                let ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
                let (mut offsets, sent) = ledger.dirty(only.as_deref());
                offsets.retain(|partition, _| owned.contains(partition));
                Ok((offsets, sent))
            }
        }
    }

    fn again(&mut self, commit: Commit) {
        self.pause = Some(Instant::now() + self.machine.config().retry_min);
        self.waiting.push_front(commit);
    }

    fn committed(&mut self, answer: Result<OffsetCommitResponse>) {
        let Some(UnderWay { commit, sent, generation, member_id }) = self.committing.take() else { return };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                tracing::debug!(group = %self.group, %error, "a commit was not answered; it is tried again");
                self.connection = None;
                self.machine.coordinator_gone(now());
                return self.again(commit);
            }
        };
        let Some((partition, code)) = calls::refused(&answer) else {
            self.ledger.lock().unwrap_or_else(PoisonError::into_inner).committed(&sent);
            let _ = commit.reply.send(Ok(()));
            return;
        };
        self.machine.commit_refused(now(), code, generation, &member_id);
        match code {
            ErrorCode::UnknownMemberId | ErrorCode::IllegalGeneration | ErrorCode::FencedInstanceId => {
                let _ = commit.reply.send(Err(CommitError::Lost { code }));
            }
            // The partitions stay dirty; those that are still ours are committed in the next generation.
            ErrorCode::RebalanceInProgress => self.again(commit),
            code if code.is_retriable() => self.again(commit),
            code => {
                let _ = commit.reply.send(Err(CommitError::Refused { partition, code }));
            }
        }
    }
}

fn now() -> std::time::Instant {
    Instant::now().into_std()
}

/// Puts a request into the connection's queue, in the order of the machine's outputs.
async fn start(
    connection: &Connection,
    config: MembershipConfig,
    request: Request,
) -> Result<Pin<Box<dyn Future<Output = Response> + Send>>, Response> {
    let config = &config;
    let wrong = |error: crate::wire::WireError| {
        tracing::error!(%error, "a group request cannot be written");
        Response::Trouble(Trouble::code(ErrorCode::InvalidRequest))
    };
    let started: Result<Pin<Box<dyn Future<Output = Result<Response>> + Send>>> = match request {
        Request::FindCoordinator => return Err(Response::Trouble(Trouble::Unreachable)),
        Request::Join { member_id, offers, reason } => {
            let call = calls::join(config, &member_id, &offers, reason).map_err(wrong)?;
            connection.start(&call).await.map(|answer| answer.map(|done| done.map(calls::joined)).boxed())
        }
        Request::Sync { member_id, generation, protocol, assignments } => {
            let call = calls::sync(config, &member_id, generation, &protocol, &assignments).map_err(wrong)?;
            let started = connection.start(&call).await;
            started.map(|answer| answer.map(|done| done.map(|answer| calls::synced(&answer))).boxed())
        }
        Request::Heartbeat { member_id, generation } => {
            let call = calls::heartbeat(config, &member_id, generation);
            let started = connection.start(&call).await;
            started.map(|answer| {
                answer.map(|done| done.map(|a| calls::plain(a.error_code, Response::Alive))).boxed()
            })
        }
        Request::Leave { member_id } => {
            let call = calls::leave(config, &member_id, connection);
            let started = connection.start(&call).await;
            started.map(|answer| {
                answer.map(|done| done.map(|a| calls::plain(a.error_code, Response::Left))).boxed()
            })
        }
    };
    match started {
        Ok(answer) => Ok(answer.map(|done| done.unwrap_or_else(|error| calls::failed(&error))).boxed()),
        Err(error) => Err(calls::failed(&error)),
    }
}
