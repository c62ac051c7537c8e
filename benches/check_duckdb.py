"""Compares the rollup's panes with DuckDB's answer on the same file. Called by check-duckdb."""

import json
import math
import sys

import duckdb

records, panes, summary = sys.argv[1:]
SIZE_MS, GRACE_MS = 30_000, 1_000

# A record is late if an earlier one in the file had reached its window's end plus grace; a window is closed if any record has.
# Rows are numbered as they are read, so the file is read by one thread.
QUERY = f"""
WITH input AS (
  SELECT row_number() OVER () AS line, * FROM read_json('{records}', format='newline_delimited', columns={{
    timestamp: 'BIGINT', region: 'VARCHAR', latency_ms: 'DOUBLE', error_count: 'BIGINT', request_size: 'BIGINT',
    response_size: 'BIGINT', cpu_usage: 'DOUBLE', memory_mb: 'DOUBLE', queue_depth: 'BIGINT', throughput: 'DOUBLE'}})
), placed AS (
  SELECT *, timestamp - timestamp % {SIZE_MS} AS start,
    max(timestamp) OVER (ORDER BY line ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
  FROM input
), marked AS (
  SELECT *, coalesce(before >= start + {SIZE_MS + GRACE_MS}, false) AS late FROM placed
)
SELECT start, region, late, count(*), avg(latency_ms), min(latency_ms), max(latency_ms), stddev_pop(latency_ms),
  count(*) FILTER (latency_ms > 80), sum(error_count)::BIGINT, sum(request_size + response_size)::BIGINT, avg(cpu_usage),
  max(memory_mb), max(queue_depth), sum(throughput), (SELECT max(timestamp) FROM input)
FROM marked GROUP BY ALL ORDER BY start, region
"""
NAMES = ["count", "latency_avg", "latency_min", "latency_max", "latency_stddev", "sla_breaches", "error_sum", "bytes_sum",
         "cpu_avg", "memory_max", "queue_depth_max", "throughput_sum"]

database = duckdb.connect()
database.execute("SET threads = 1")
expected, late = {}, 0
for start, region, is_late, *values, latest in database.execute(QUERY).fetchall():
    if is_late:
        late += values[0]
    elif latest >= start + SIZE_MS + GRACE_MS:
        expected[start, region] = dict(zip(NAMES, values))

published = [json.loads(line) for line in open(panes)]
assert [(p["window_start_ms"], p["region"]) for p in published] == list(expected), "not the same panes"
worst = 0.0
for pane in published:
    want = expected[pane["window_start_ms"], pane["region"]]
    for name in NAMES:
        if isinstance(want[name], int) or name in ("latency_min", "latency_max", "memory_max"):
            assert pane[name] == want[name], (name, pane, want)
        else:
            error = abs(pane[name] - want[name]) / abs(want[name])
            assert math.isfinite(error) and error <= 1e-9, (name, pane, want)
            worst = max(worst, error)
counted = json.load(open(summary))
assert counted["late"] == late, (counted, late)
print(f"{len(published)} panes equal, {late} late in both, floats within {worst:.1e}")
