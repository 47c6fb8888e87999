"""The benchmark of days of jobs: what it counts, and the page that it is the source of."""

import json
import re

from benchmarks.days.day import DAY_SECONDS, Day, measure
from benchmarks.days.tables import LIMITS, PARTITION_WRITES, tables

from doc_blocks import ROOT

DAY = Day(2_000, 240, pools=4, shares=2)


def test_a_part_of_a_day_is_scaled_to_the_day_and_shows_its_limits():
    found = measure(DAY)
    assert 0 < found["submitted"] < 10
    assert 0.7 * DAY.running < found["running"] < 1.3 * DAY.running
    each_day, each_second, most = found["each_day"], found["each_second"], found["most_in_a_second"]
    assert abs(each_day["read_units"] - each_second["reads"] * DAY_SECONDS) < DAY_SECONDS * 1e-3
    assert 0 < each_second["STATE"] * DAY_SECONDS < each_day["write_units"]
    assert each_second["STATE"] <= most["STATE"] < PARTITION_WRITES
    assert each_second["manager"] > 0
    cost, limits = tables({"days": [found]})
    assert cost.rows[0][:2] == ("2,000", "240 s")
    assert [row[0] for row in limits.rows] == [name for name, _, _ in LIMITS]
    assert all(len(row) == len(limits.columns) for row in limits.rows)


def test_the_page_of_costs_has_the_figures_of_the_days_that_were_run():
    (file,) = (ROOT / "benchmarks" / "results").glob("*-days.json")
    days = json.loads(file.read_text())["days"]
    page = (ROOT / "docs/explanation/cost.md").read_text()
    cells = r"([\d,]+) \| ([\d,]+) \| ([\d.]+) \(most: (\d+)\) \| ([\d.]+) \| (\d+) % .*\| ([\d.]+)"
    shown = re.findall(rf"^\| {cells} \|$", page, re.MULTILINE)
    assert shown == [
        (
            f"{one['jobs']:,}",
            f"{one['running']:,.0f}",
            f"{one['each_second']['STATE']:.2f}",
            str(one["most_in_a_second"]["STATE"]),
            f"{one['each_second']['reads']:.1f}",
            f"{one['each_second']['manager']:.0%}".rstrip("%"),
            f"{one['dollars']:.2f}",
        )
        for one in days
    ]
    assert len(shown) == 3


def test_a_day_of_100_000_jobs_uses_a_small_part_of_what_a_partition_takes():
    """Writes grow with the jobs alone: those of a job are about the same at all rates that were run, ticks aside."""
    (file,) = (ROOT / "benchmarks" / "results").glob("*-days.json")
    days = json.loads(file.read_text())["days"]
    ticks = 24 * 60
    each = [(one["each_second"]["STATE"] * DAY_SECONDS - ticks) / one["jobs"] for one in days]
    assert max(each) <= min(each) * 1.2
    assert days[-1]["jobs"] == 100_000
    assert days[-1]["each_second"]["STATE"] < PARTITION_WRITES / 50
