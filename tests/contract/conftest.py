"""Engines for the contract suite, each with a table of its own for every test."""

from __future__ import annotations

import pytest
from engine_fixtures import RUNS_DYNOXIDE, dynoxide, dynoxide_client, moto_client  # noqa: F401 - fixtures
from engines import DynamoEngine, MemoryEngine

MANY_ROWS = {
    "test_a_deep_lane_is_cut_only_where_it_has_more",
    "test_a_filter_finds_entries_between_many_others",
    "test_a_job_is_in_one_place_after_every_move",
    "test_a_lane_is_read_as_far_as_jobs_could_start",
    "test_a_long_history_is_found_whole",
    "test_a_long_history_keeps_its_times_when_the_entry_moves",
    "test_a_long_part_is_walked_page_by_page",
    "test_a_pass_reads_a_fresh_job_behind_more_served_ones_than_it_reads_of_a_lane",
    "test_a_request_that_no_transaction_holds_is_refused_by_its_largest_member",
    "test_adoptions_are_listed_among_the_others",
    "test_an_answer_reads_lanes_as_deep_as_it_asks",
    "test_ends_add_up_in_the_order_in_which_they_came",
    "test_entries_are_listed_newest_first_across_months",
    "test_filters_show_what_matches_and_nothing_else",
    "test_kinds_and_strangers_are_bounded_for_any_submitter",
    "test_lanes_whose_names_are_alike_do_not_mix",
    "test_ninety_changes_in_place_are_one",
    "test_nothing_of_a_purged_job_is_found",
    "test_pages_together_are_the_whole",
    "test_the_largest_request_that_sagemaker_accepts_is_kept",
}
"""Proofs that take moto a second or more, since it copies the table for every row of a transaction."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave the proofs of many rows in moto to the slow run on platforms where Dynoxide runs them."""
    if RUNS_DYNOXIDE:
        for item in items:
            if item.path.name == "test_store_moto.py" and item.originalname in MANY_ROWS:
                item.add_marker(pytest.mark.slow)


@pytest.fixture
def dynoxide_engine(dynoxide_client):  # noqa: F811 - a fixture
    return DynamoEngine(dynoxide_client)


@pytest.fixture
def moto_engine(moto_client):  # noqa: F811 - a fixture
    engine = DynamoEngine(moto_client)
    yield engine
    moto_client.delete_table(TableName=engine.name)  # moto copies all tables for each transaction


@pytest.fixture
def memory_engine():
    return MemoryEngine()
