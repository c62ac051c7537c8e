//! The rollup over a file: one JSON record per line, event time from the field `timestamp`.
//!
//! The file is one partition, read to its end once. Windows that the last watermark has not passed stay open and are counted; `--flush`
//! publishes those that end before now.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use datum::codec::{Json, ProjectedJson};
use datum::window::{KeyedWindows, RecordPosition, Tumbling};

use super::definition::{Dated, Load, Metric, slo_rollup};
use super::panes::PanePrinter;
use crate::error::{CliError, UsageError};
use crate::options::{OnBadRecord, RollupOptions};
use crate::progress;
use crate::summary::{Counts, Stopwatch};

/// A longer line is not a record: what bounds the memory that a file without line breaks can take.
const LONGEST_LINE: u64 = 4 << 20;

/// How many records pass between two looks at the progress bar.
const ROUND: u64 = 10_000;

/// Runs the command on `path`.
pub(crate) fn run(options: &RollupOptions, path: &Path) -> Result<(), CliError> {
    let windows = Tumbling::of(options.window).grace(options.grace).checked().map_err(UsageError::from)?;
    let mut lines = Lines::open(path)?;
    let bar = progress::bar(None).with_message("read");
    let stopwatch = Stopwatch::start();
    let mut printer = PanePrinter::new(options.format);
    let mut keyed = KeyedWindows::<Arc<str>, Load, _>::new(windows, slo_rollup());
    let mut decoder = Decoder { dates: Json::projected(), metrics: Json::projected() };
    let mut counts = Counts::default();

    while let Some(line) = lines.next()? {
        counts.records += 1;
        if counts.records.is_multiple_of(ROUND) {
            bar.set_position(counts.records);
        }
        let offset = i64::try_from(counts.records).unwrap_or(i64::MAX);
        let placed = line.decode(&mut decoder, |at, region, load| {
            keyed.add(RecordPosition::new(0, offset, at), region, &load);
        });
        match placed {
            Ok(()) => {}
            Err(reason) if options.on_bad_record == OnBadRecord::Fail => {
                return Err(CliError::BadRecord { path: path.to_path_buf(), line: lines.number, reason });
            }
            Err(_) => {
                counts.undecodable += 1;
                continue;
            }
        }
        if keyed.ripe() {
            printer.print(keyed.close())?;
        }
    }
    bar.finish_and_clear();

    counts.late = keyed.late();
    counts.open_windows = keyed.open().len() as u64;
    if options.flush {
        let now = now_ms();
        counts.open_windows = keyed.open().iter().filter(|window| window.end > now).count() as u64;
        let ended = keyed.finish().into_iter().filter(|pane| pane.window.end <= now).collect();
        printer.print(ended)?;
    }
    counts.panes = printer.count();
    let summary = stopwatch.summarise(counts);
    printer.finish(&summary)?;
    summary.save(options.summary_json.as_deref())
}

fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// The lines of a file that hold something.
struct Lines {
    file: BufReader<File>,
    path: Box<Path>,
    line: Vec<u8>,
    number: u64,
}

/// One line, or the news that it is too long to be one.
enum Line<'a> {
    Whole(&'a [u8]),
    TooLong,
}

/// Reads the event time and the wanted fields of a line, each by a projection of its own.
struct Decoder {
    dates: ProjectedJson<Dated>,
    metrics: ProjectedJson<Metric<'static>>,
}

impl Line<'_> {
    /// Gives event time, region and load to `then`.
    fn decode(&self, with: &mut Decoder, then: impl FnOnce(i64, &str, Load)) -> Result<(), String> {
        let Line::Whole(bytes) = *self else {
            return Err(format!("the line is longer than {LONGEST_LINE} bytes"));
        };
        let dated = with.dates.decode(bytes).map_err(|error| error.to_string())?;
        let placed = with.metrics.decode_with(bytes, |metric| {
            let (region, load) = metric.key_and_load();
            then(dated.timestamp, region, load);
        });
        placed.map_err(|error| error.to_string())
    }
}

impl Lines {
    fn open(path: &Path) -> Result<Self, CliError> {
        let file = File::open(path).map_err(CliError::file("read", path))?;
        Ok(Self {
            file: BufReader::with_capacity(1 << 20, file),
            path: path.into(),
            line: Vec::new(),
            number: 0,
        })
    }

    /// The next line that is not blank; its number is in `number`.
    fn next(&mut self) -> Result<Option<Line<'_>>, CliError> {
        loop {
            self.line.clear();
            let read = self.read_line().map_err(CliError::file("read", &*self.path))?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if self.line.len() as u64 > LONGEST_LINE {
                self.skip_rest().map_err(CliError::file("read", &*self.path))?;
                return Ok(Some(Line::TooLong));
            }
            if !self.line.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some(Line::Whole(&self.line)));
            }
        }
    }

    fn read_line(&mut self) -> io::Result<usize> {
        (&mut self.file).take(LONGEST_LINE + 1).read_until(b'\n', &mut self.line)
    }

    fn skip_rest(&mut self) -> io::Result<()> {
        if self.line.last() != Some(&b'\n') {
            self.file.skip_until(b'\n')?;
        }
        Ok(())
    }
}
