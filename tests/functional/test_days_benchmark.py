"""The benchmark of days of jobs: what it counts, and the page that it is the source of."""

from benchmarks.days.day import DAY_SECONDS, Day, measure
from benchmarks.days.tables import LIMITS, PARTITION_WRITES, tables

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
