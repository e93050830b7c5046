"""Write `docs/monitoring.md`, and its picture, from streams whose truth is known.

python docs/examples/monitoring.py [--docs docs]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np

import calibrant as cal

STREAMS, DAYS, EACH, BROKEN = 200, 100, 100, 60

PAGE = """# A monitor that may be looked at every day

Written by `python docs/examples/monitoring.py`.

`calibration_over_time` judges existing rows, once: run every day, it would sooner or later see a change where there is
none. `CalibrationMonitor` may be looked at after every row: on calibrated rows, at most one monitor in twenty ever
raises an alarm within its `horizon` (100,000 rows), however often you look.

## Every day

```python
import calibrant as cal

monitor = cal.CalibrationMonitor()
monitor.update(y_true, y_prob, time=today)  # a batch, or a row
monitor.save("monitor.json")  # tomorrow: cal.CalibrationMonitor.load("monitor.json")
if monitor.alarm:
    print(monitor.status)
```

A stream of {each} rows a day, whose outcomes become a fifth less frequent than predicted on day {broken}:

```
{status}
```

![The e-value over time](images/monitor.png)

The file holds the state of {bets} bets, not the rows: {size:,} bytes after {rows:,} rows.

After `horizon` rows no more bets begin: a later change is found late or never, `horizon_over` is true, and `status`
says so. `monitor.reset()` begins again; `CalibrationMonitor(horizon=None)` never ends.

If another process wrote the file after this monitor was loaded, `save` raises FileExistsError, as the rows of the other
one would be lost.

## From the command line

```bash
calibrant monitor scored.parquet --time day --every month --state monitor.json --html monitor.html --force
```

prints the table of `calibration_over_time` and the monitor's status. With `--state` the monitor goes on from the last
call, with the rows whose time is later; the file may hold all rows or the new ones. Times with a time zone are
compared as instants, also across the end of summer time, and with those of files in other zones.

The command's monitor has no horizon, so a state does not expire. With `--horizon 100000` a change within that number of
rows is found sooner ([by how much](#how-it-works)), and a later one late or never: once the horizon is over, the
command warns on standard error, and `--json` has `"horizon_over": true`. `--reset` begins a new monitor in the same
file, as after a repair, and with `--horizon` (a number, or `none`) one with another horizon.

The exit code is 1 only with `--fail-on-alarm`: for an alarm, every time until `--reset`, and where the horizon is over,
as nobody looks any more. It is 2 for bad input, and if another process wrote the state in the meantime: the rows were
not added, so run again.

cron, every morning at six, mails every morning after an alarm, until you run the command once with `--reset`:

```
0 6 * * *  cd /data && calibrant monitor new.parquet --time day --state monitor.json --fail-on-alarm || mail -s alarm me
```

Airflow, where one task at a time may write the state (`max_active_runs=1`):

```python
BashOperator(
    task_id="calibration",
    bash_command="calibrant monitor /data/scored.parquet --time day --state /data/monitor.json --fail-on-alarm",
)
```

GitHub Actions, the state kept between runs. Delete the cache to begin again; it forgets a state that no run has read
for a week:

```yaml
on:
  schedule: [{{cron: "0 6 * * *"}}]
jobs:
  calibration:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/cache@v4
        with: {{path: monitor.json, key: "monitor-${{{{ github.run_id }}}}", restore-keys: monitor-}}
      - run: pip install "calibrant[cli]"
      - run: calibrant monitor scored.csv --time day --state monitor.json --fail-on-alarm
```

## After a repair

`monitor.reset(calibrator)` begins again with an e-value of 1, and repairs later probabilities (`--reset` of the command
only begins again: give it repaired ones). Each monitor has its own chance of a false alarm, and chances add up;
`status` says so:

```
{again}
```

## Labels that come later

```python
monitor.expect("order 17", 0.2)  # now
monitor.observe("order 17", 1)  # when it is known
```

At most `max_open` predictions wait for their label; the oldest expire, and are counted.

**Where lateness depends on the label the guarantee fails.** A calibrated model predicts whether loans default. A
default is known within 30 days, a loan that is paid back only after 60. Judged in the order in which labels are known,
the first rows are all defaults. Of {streams} streams of a calibrated model with {total:,} rows:

| labels are judged | share of streams with an alarm |
|---|---:|
| in the order of the predictions | {ordered:.1%} |
| as soon as they are known | {early:.1%} |

Judge each prediction after one fixed delay that is long enough for every label (here 60 days), whatever its label.

## How it works

Each of 14 alternatives (log-odds shifted by up to ± 1.2, or stretched by 0.5 to 2) is bet on, and bets begin at every
row with a small part of the wealth. So a change is found about equally soon, however long the model was calibrated
before. `since` is the row at which the alternative that fits best begins to fit. With `horizon=None` the guarantee
holds for ever, and changes are found later, except among the first 8,000 rows, which have more of the wealth.

With a horizon <!-- figure coverage.monitor alarms "horizon 100,000" -->?<!-- end --> % of calibrated streams of 100,000
rows alarmed, and <!-- figure coverage.monitor alarms "no horizon" -->?<!-- end --> % without one. A change was found
after <!-- figure coverage.monitor delays "horizon 100,000" -->?<!-- end --> times as many rows as by the best window in
hindsight, which nobody has, and after <!-- figure coverage.monitor delays "no horizon" -->?<!-- end --> times as many
without a horizon:
[benchmarks/coverage/monitor.md](../benchmarks/coverage/monitor.md), which also shows how much sooner a monitor that
knew the change would alarm; other monitors:
[benchmarks/coverage/monitor_peers.md](../benchmarks/coverage/monitor_peers.md).

Several classes: the confidence, one class, or `notion="classwise"`, which averages the classes' e-values. Rows that
depend on each other: `groups=`, one bet a group, all of whose rows are in one batch.
"""


def late(seed: int, *, ordered: bool) -> bool:
    """Whether a calibrated stream raises an alarm, by when labels are judged."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 4, DAYS * 20)
    y = rng.random(p.size) < p
    made = np.arange(p.size) // 20
    known = made + np.where(y, rng.integers(1, 31, p.size), 60)
    order = np.arange(p.size) if ordered else np.argsort(known, kind="stable")
    monitor = cal.CalibrationMonitor()
    monitor.update(y[order].astype(int), p[order])
    return monitor.alarm


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    docs = parser.parse_args().docs
    rng = np.random.default_rng(0)
    monitor = cal.CalibrationMonitor()
    for day in range(DAYS):
        p = rng.random(EACH)
        y = rng.random(EACH) < (p if day < BROKEN else 0.8 * p)
        monitor.update(y, p, time=np.datetime64("2026-01-01") + np.full(EACH, day, dtype="m8[D]"))
        if monitor.alarm:
            break
    status, rows = monitor.status, monitor.n_samples
    monitor.plot().figure_.savefig(docs / "images" / "monitor.png", dpi=110)
    state = docs / "images" / "monitor.json"
    monitor.save(state)
    size = state.stat().st_size
    state.unlink()
    monitor.reset()
    p = rng.random(500)
    monitor.update(rng.random(500) < p, p)
    alarms = {o: float(np.mean([late(seed, ordered=o) for seed in range(STREAMS)])) for o in (True, False)}
    text = PAGE.format(
        each=EACH,
        broken=BROKEN,
        status=status,
        bets=14,
        size=size,
        rows=rows,
        again=monitor.status,
        streams=STREAMS,
        total=DAYS * 20,
        ordered=alarms[True],
        early=alarms[False],
    )
    (docs / "monitoring.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
