"""Compressed texts: read back as they were, by the dictionary that they name, and never larger than permitted."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import builders as b
from trainmaster.adapters.dynamodb.codec import encode_job
from trainmaster.adapters.dynamodb.encoding.compression import compress, inflate

DICTIONARY = 0x10FEB126
"""Rows in users' tables need the dictionary with this checksum: add another one rather than change it."""
LIMIT = 1_000_000


@given(st.binary() | st.text().map(str.encode))
def test_what_is_compressed_comes_back(text):
    assert inflate(compress(text), LIMIT) == text
    assert inflate(zlib.compress(text), LIMIT) == text, "rows of older schemas have no dictionary"


def test_the_dictionary_is_never_changed():
    assert int.from_bytes(compress(b"text")[2:6], "big") == DICTIONARY


def test_the_text_of_a_running_job_takes_less_than_a_third():
    job = b.a_running_job("job1", container_image=b.IMAGE, submitted_by="arn:aws:sts::111122223333:assumed-role/ml")
    text = encode_job(job, job.history).encode()
    assert len(compress(text)) < len(text) / 3 < len(zlib.compress(text, level=9))


@pytest.mark.parametrize("level", [compress, zlib.compress])
def test_more_than_the_limit_is_refused(level):
    assert inflate(level(b" " * 50), 50) == b" " * 50
    with pytest.raises(ValueError, match="more than 50 bytes"):
        inflate(level(b" " * 51), 50)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not compressed|cut off"),
        (b"text", "not compressed"),
        (compress(b"text")[:-3], "cut off"),
        (compress(b"text")[:2] + bytes(4) + compress(b"text")[6:], "dictionary that this release does not know"),
    ],
)
def test_other_bytes_are_no_text(data, words):
    with pytest.raises(ValueError, match=words):
        inflate(data, LIMIT)
