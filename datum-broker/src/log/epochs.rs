//! Which offset each leader epoch began at (KIP-101, KIP-320).

/// The leader epochs of one partition, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Epochs {
    starts: Vec<(i32, i64)>,
}

impl Epochs {
    /// Notes that `epoch` wrote at `offset`; only the first write of an epoch counts.
    pub(crate) fn note(&mut self, epoch: i32, offset: i64) {
        if self.starts.last().is_none_or(|&(last, _)| epoch > last) {
            self.starts.push((epoch, offset));
        }
    }

    /// Forgets epochs that began at `end` or beyond.
    pub(crate) fn forget_from(&mut self, end: i64) {
        self.starts.retain(|&(_, start)| start < end);
    }

    /// The largest epoch not above `asked`, and where it ends: the start of the next epoch, or `end` for the present
    /// one. `None` when every epoch is newer, or `asked` is above `current`.
    pub(crate) fn end_of(&self, asked: i32, current: i32, end: i64) -> Option<(i32, i64)> {
        if asked == current {
            return Some((current, end));
        }
        if asked > current {
            return None;
        }
        let next = self.starts.iter().position(|&(epoch, _)| epoch > asked);
        match next {
            Some(0) => self.starts.first().map(|&(_, start)| (asked, start)),
            Some(at) => Some((self.starts[at - 1].0, self.starts[at].1)),
            None => self.starts.last().map(|&(epoch, _)| (epoch, end)),
        }
    }

    /// The epoch that wrote `offset`.
    pub(crate) fn of(&self, offset: i64) -> Option<i32> {
        self.starts.iter().rev().find(|&&(_, start)| start <= offset).map(|&(epoch, _)| epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_ends_where_the_next_begins() {
        let mut epochs = Epochs::default();
        epochs.note(0, 0);
        epochs.note(0, 5);
        epochs.note(3, 10);
        assert_eq!(epochs.end_of(0, 3, 20), Some((0, 10)));
        assert_eq!(epochs.end_of(2, 3, 20), Some((0, 10)));
        assert_eq!(epochs.end_of(3, 3, 20), Some((3, 20)));
        assert_eq!(epochs.end_of(4, 3, 20), None);
        assert_eq!(epochs.of(9), Some(0));
        assert_eq!(epochs.of(10), Some(3));
    }
}
