//! `datum group`: how far a group is, and setting it back.

use std::collections::HashMap;
use std::io::{self, Write};

use datum::job::Mode;
use datum::job::run::transactional_id;
use datum::job::stored::Stored;
use datum::kafka::admin::{Admin, Committed, OffsetSpec};
use datum::kafka::group::{CommitOffset, Offsets};
use datum::kafka::transaction::TransactionalProducer;
use datum::kafka::{ErrorCode, Isolation, ProducerSettings, TopicPartition};
use datum::window::Watermark;
use serde::Serialize;

use crate::error::CliError;
use crate::options::{GroupAction, GroupOptions, ResetOptions, ResetTo, ShowOptions, WhichGroup};
use crate::topics;

/// Runs the command.
pub(crate) async fn run(options: &GroupOptions) -> Result<(), CliError> {
    match &options.action {
        GroupAction::Show(options) => show(options).await,
        GroupAction::Reset(options) => reset(options).await,
    }
}

/// One partition as its group has left it.
#[derive(Debug, Serialize)]
struct Row {
    partition: i32,
    /// The committed offset: of a window job the lowest that an open window still needs.
    committed: Option<i64>,
    /// The next unprocessed offset.
    position: Option<i64>,
    /// The high watermark.
    end: i64,
    /// What is not processed: end - position.
    lag: i64,
    /// What a restart reads again: position - committed.
    replay: Option<i64>,
    /// The partition's own watermark just before the committed offset, in event time.
    watermark_ms: Option<i64>,
    /// The highest window end plus grace that the job has published.
    published_ms: Option<i64>,
}

async fn show(options: &ShowOptions) -> Result<(), CliError> {
    let WhichGroup { brokers, group, topic } = &options.which;
    let admin = topics::connect(brokers).await?;
    let partitions = topics::partitions(&admin, topic).await?;
    let committed = admin.committed_offsets(group, &partitions).await?;
    let ends = offsets(&admin, &partitions, OffsetSpec::Latest).await?;
    let starts = offsets(&admin, &partitions, OffsetSpec::Earliest).await?;
    let rows = partitions.iter().map(|partition| {
        let (start, end) = (starts.get(partition).copied(), ends.get(partition).copied());
        Row::of(partition, committed.get(partition), start.unwrap_or(0), end.unwrap_or(0))
    });
    let rows: Vec<Row> = rows.collect();
    let mut out = io::stdout().lock();
    let written = if options.json { print_json(&rows, &mut out) } else { print_table(&rows, &mut out) };
    written.map_err(CliError::Output)?;
    drop(out);
    if options.json {
        return Ok(());
    }
    let members = admin.group_members(group).await?;
    let line = match members.len() {
        0 => "no members".to_owned(),
        1 => format!("one member: {}", members.concat()),
        count => format!("{count} members: {}", members.join(", ")),
    };
    writeln!(io::stdout().lock(), "{line}").map_err(CliError::Output)
}

impl Row {
    fn of(partition: &TopicPartition, committed: Option<&Committed>, start: i64, end: i64) -> Self {
        let state = committed.and_then(state_of);
        let offset = committed.map(|committed| committed.offset);
        let position = state.as_ref().map(|state| state.position).or(offset);
        let time = |of: fn(&Stored) -> Watermark| state.as_ref().and_then(|state| of(state).get());
        Self {
            partition: partition.partition,
            committed: offset,
            position,
            end,
            lag: end.saturating_sub(position.unwrap_or(start)).max(0),
            replay: state.as_ref().map(|state| state.position - state.low),
            watermark_ms: time(|state| state.watermark),
            published_ms: time(|state| state.published),
        }
    }
}

fn print_json(rows: &[Row], out: &mut impl Write) -> io::Result<()> {
    rows.iter().try_for_each(|row| {
        serde_json::to_writer(&mut *out, row)?;
        writeln!(out)
    })
}

fn print_table(rows: &[Row], out: &mut impl Write) -> io::Result<()> {
    const HEAD: [&str; 8] =
        ["PARTITION", "COMMITTED", "POSITION", "END", "LAG", "REPLAY", "WATERMARK_MS", "PUBLISHED_MS"];
    let cell = |number: Option<i64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let line = |cells: [String; 8]| {
        let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>14}")).collect();
        cells.concat()
    };
    writeln!(out, "{}", line(HEAD.map(str::to_owned)))?;
    for row in rows {
        let cells = [
            row.partition.to_string(),
            cell(row.committed),
            cell(row.position),
            row.end.to_string(),
            row.lag.to_string(),
            cell(row.replay),
            cell(row.watermark_ms),
            cell(row.published_ms),
        ];
        writeln!(out, "{}", line(cells))?;
    }
    let (lag, replay): (i64, i64) =
        (rows.iter().map(|row| row.lag).sum(), rows.iter().filter_map(|row| row.replay).sum());
    writeln!(out, "{lag} records are not processed, {replay} would be read again by a restart")
}

async fn reset(options: &ResetOptions) -> Result<(), CliError> {
    let WhichGroup { brokers, group, topic } = &options.which;
    let admin = topics::connect(brokers).await?;
    let partitions = topics::partitions(&admin, topic).await?;
    if !admin.group_members(group).await?.is_empty() {
        return Err(CliError::GroupHasMembers { group: group.clone() });
    }
    end_transactions(&admin, &options.which, &partitions).await?;
    let starts = offsets(&admin, &partitions, OffsetSpec::Earliest).await?;
    let ends = offsets(&admin, &partitions, OffsetSpec::Latest).await?;
    let wanted: Offsets = partitions
        .iter()
        .map(|partition| {
            let start = starts.get(partition).copied().unwrap_or(0);
            let end = ends.get(partition).copied().unwrap_or(0);
            let offset = match options.to {
                ResetTo::Earliest => start,
                ResetTo::Latest => end,
                // No further than the log: an offset outside of it would be answered with an error, or be jumped from.
                ResetTo::Offset(offset) => offset.clamp(start, end.max(start)),
            };
            (partition.clone(), CommitOffset::new(offset))
        })
        .collect();
    admin.set_offsets(group, &wanted).await.map_err(|error| match error.code() {
        Some(ErrorCode::UnknownMemberId) => CliError::GroupHasMembers { group: group.clone() },
        _ => error.into(),
    })?;
    let mut out = io::stdout().lock();
    for (partition, commit) in &wanted {
        writeln!(out, "{partition} {}", commit.offset).map_err(CliError::Output)?;
    }
    writeln!(
        out,
        "start a window job of this group with --reset; what it published before may be published again"
    )
    .map_err(CliError::Output)
}

/// Ends what a job of this group may have left open, by taking its transactional ids over.
async fn end_transactions(
    admin: &Admin,
    which: &WhichGroup,
    partitions: &[TopicPartition],
) -> Result<(), CliError> {
    let WhichGroup { brokers, group, topic } = which;
    let take_over = async |id: &str| {
        let settings = ProducerSettings::new(&brokers.join(",")).transactional_id(id);
        Ok::<(), CliError>(TransactionalProducer::connect(settings).await?.init().await?)
    };
    take_over(&transactional_id(group, topic, None)).await?;
    let of_partitions: Vec<i32> = match admin.committed_offsets(group, partitions).await {
        Ok(committed) => committed
            .iter()
            .filter(|(_, committed)| {
                state_of(committed).is_some_and(|state| state.mode == Mode::CoPartitioned)
            })
            .map(|(partition, _)| partition.partition)
            .collect(),
        // Somebody's transaction is still open: that of a partition's owner.
        Err(error) if error.code() == Some(ErrorCode::UnstableOffsetCommit) => {
            partitions.iter().map(|partition| partition.partition).collect()
        }
        Err(error) => return Err(error.into()),
    };
    for partition in of_partitions {
        take_over(&transactional_id(group, topic, u32::try_from(partition).ok())).await?;
    }
    Ok(())
}

/// What a window job has committed beside its offset; none where something else has committed.
fn state_of(committed: &Committed) -> Option<Stored> {
    Stored::from_text(committed.offset, &committed.metadata).ok().flatten()
}

async fn offsets(
    admin: &Admin,
    partitions: &[TopicPartition],
    spec: OffsetSpec,
) -> Result<HashMap<TopicPartition, i64>, CliError> {
    let wanted: Vec<_> = partitions.iter().map(|partition| (partition.clone(), spec)).collect();
    let found = admin.list_offsets(&wanted, Isolation::ReadUncommitted).await?;
    Ok(found.into_iter().filter_map(|(partition, offset)| Some((partition, offset.offset?))).collect())
}
