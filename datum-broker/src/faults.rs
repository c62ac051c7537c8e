//! Scripted faults: what a test wants to go wrong, at which request.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datum_kafka::wire::ErrorCode;

use crate::api::Api;

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Delay(Duration),
    Error(ErrorCode),
    Disconnect,
    DisconnectAfter,
    Truncate,
    Length(i32),
    Cut(usize),
    Correlation(i32),
    Silence,
}

#[derive(Debug)]
struct Rule {
    api: Api,
    node: Option<i32>,
    /// Requests that pass before it begins.
    skip: u64,
    /// Requests that it still meets.
    times: u64,
    action: Action,
}

/// The script of a broker. Cheap to clone; all clones write the same script.
///
/// ```
/// # async fn example() -> Result<(), datum_broker::StartError> {
/// use datum_broker::{Api, Broker};
/// use datum_kafka::wire::ErrorCode;
///
/// let broker = Broker::builder().start().await?;
/// broker.faults().on(Api::Fetch).nth(3).error(ErrorCode::NotLeaderOrFollower);
/// broker.faults().on(Api::Produce).times(2).delay(std::time::Duration::from_millis(50));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Faults {
    script: Arc<Mutex<Script>>,
}

#[derive(Debug, Default)]
struct Script {
    rules: Vec<Rule>,
    /// Requests met so far, by API.
    seen: Vec<(Api, u64)>,
}

impl Faults {
    /// Begins a rule for requests of one API: the next one, unless [`Fault::nth`] and [`Fault::times`] say otherwise.
    pub fn on(&self, api: Api) -> Fault {
        Fault { faults: self.clone(), api, node: None, skip: 0, times: 1 }
    }

    /// Takes back every rule.
    pub fn clear(&self) {
        self.with(|script| script.rules.clear());
    }

    /// How many requests of an API have come since the start, on all nodes: what tests assert that something was, or was
    /// not, sent.
    pub fn requests(&self, api: Api) -> u64 {
        self.with(|script| script.seen.iter().find(|(known, _)| *known == api).map_or(0, |(_, count)| *count))
    }

    /// How many rules have not been used up.
    pub fn pending(&self) -> usize {
        self.with(|script| script.rules.len())
    }

    /// Counts a request and tells what happens to it, in the order in which the rules were made.
    pub(crate) fn meet(&self, api: Api, node: i32) -> Vec<Action> {
        self.with(|script| {
            match script.seen.iter_mut().find(|(known, _)| *known == api) {
                Some((_, count)) => *count += 1,
                None => script.seen.push((api, 1)),
            }
            let mut actions = Vec::new();
            for rule in &mut script.rules {
                if rule.api != api || rule.node.is_some_and(|wanted| wanted != node) {
                    continue;
                }
                if rule.skip > 0 {
                    rule.skip -= 1;
                } else {
                    rule.times -= 1;
                    actions.push(rule.action);
                }
            }
            script.rules.retain(|rule| rule.times > 0);
            actions
        })
    }

    fn with<T>(&self, how: impl FnOnce(&mut Script) -> T) -> T {
        how(&mut self.script.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A rule being written; it takes effect when its action is named.
#[derive(Debug)]
#[must_use = "a rule without an action does nothing"]
pub struct Fault {
    faults: Faults,
    api: Api,
    node: Option<i32>,
    skip: u64,
    times: u64,
}

impl Fault {
    /// Begins at the n-th request from now, counted from 1.
    pub fn nth(mut self, n: u64) -> Self {
        self.skip = n.saturating_sub(1);
        self
    }

    /// Meets this many requests, one after the other (1 by default).
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// Meets every request from there on, until [`Faults::clear`].
    pub fn always(self) -> Self {
        self.times(u64::MAX)
    }

    /// Only on this node.
    pub fn node(mut self, node: i32) -> Self {
        self.node = Some(node);
        self
    }

    /// The request waits, by the broker's clock, before it is handled; what follows on its connection waits too.
    pub fn delay(self, by: Duration) {
        self.put(Action::Delay(by));
    }

    /// The request changes nothing and is answered with this error, in every part that can carry one.
    pub fn error(self, code: ErrorCode) {
        self.put(Action::Error(code));
    }

    /// The connection is closed before the request is handled.
    pub fn disconnect(self) {
        self.put(Action::Disconnect);
    }

    /// The request is handled, then the connection is closed without an answer.
    pub fn disconnect_after(self) {
        self.put(Action::DisconnectAfter);
    }

    /// The request is handled, then half of the answer is sent and the connection is closed.
    pub fn truncate(self) {
        self.put(Action::Truncate);
    }

    /// The answer's length field says this instead.
    pub fn length(self, length: i32) {
        self.put(Action::Length(length));
    }

    /// The request is handled, then only so many bytes of the answer, its length field included, are sent and the connection is closed.
    pub fn cut(self, bytes: usize) {
        self.put(Action::Cut(bytes));
    }

    /// The answer carries this correlation id instead of the request's.
    pub fn correlation(self, id: i32) {
        self.put(Action::Correlation(id));
    }

    /// The request is never answered, nor is anything after it on the connection, which stays open until the client, or the end of the
    /// broker, closes it.
    pub fn silence(self) {
        self.put(Action::Silence);
    }

    fn put(self, action: Action) {
        let Self { faults, api, node, skip, times } = self;
        if times > 0 {
            faults.with(|script| script.rules.push(Rule { api, node, skip, times, action }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_meets_the_requests_it_names() {
        let faults = Faults::default();
        faults.on(Api::Fetch).nth(2).times(2).node(1).disconnect();
        faults.on(Api::Fetch).always().error(ErrorCode::NotLeaderOrFollower);
        let error = Action::Error(ErrorCode::NotLeaderOrFollower);
        assert_eq!(faults.meet(Api::Produce, 1), []);
        assert_eq!(faults.meet(Api::Fetch, 1), [error]);
        assert_eq!(faults.meet(Api::Fetch, 2), [error], "another node does not count");
        assert_eq!(faults.meet(Api::Fetch, 1), [Action::Disconnect, error]);
        assert_eq!(faults.meet(Api::Fetch, 1), [Action::Disconnect, error]);
        assert_eq!(faults.meet(Api::Fetch, 1), [error]);
        assert_eq!((faults.requests(Api::Fetch), faults.pending()), (5, 1));
        faults.clear();
        assert_eq!(faults.meet(Api::Fetch, 1), []);
    }
}
