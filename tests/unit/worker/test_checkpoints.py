"""Checkpoints: complete or not there, and no older world spoils a newer one's; in a directory and in S3."""

from __future__ import annotations

import stat

import pytest
from moto import mock_aws

from aws_clients import aws_client
from trainmaster.worker.checkpoints.checkpoints import CheckpointId, Checkpoints, DirectoryStore, Fenced
from trainmaster.worker.checkpoints.s3 import S3Store


@pytest.fixture
def s3():
    with mock_aws():
        client = aws_client("s3")
        client.create_bucket(Bucket="bucket")
        yield client


@pytest.fixture(params=["directory", "s3"])
def keeper(request, tmp_path):
    if request.param == "directory":
        return DirectoryStore(tmp_path / "kept")
    return S3Store(request.getfixturevalue("s3"), "s3://bucket/jobs/bert/")


@pytest.fixture
def open_as(keeper, tmp_path):
    def make(attempt=1, round_=1, newest=None, job="bert"):
        return Checkpoints(keeper, attempt, round_, lambda: newest, tmp_path / "kept", job=job)

    return make


def write(checkpoints, step, text="", **options):
    with checkpoints.writing(step, **options) as directory:
        (directory / "deep").mkdir()
        (directory / "deep" / "state.pt").write_text(text or str(step))


def read(checkpoints):
    with checkpoints.reading(checkpoints.latest()) as directory:
        return (directory / "deep" / "state.pt").read_text()


def test_there_is_none_at_first(open_as):
    assert open_as().latest() is None


def test_what_was_written_last_is_read(open_as):
    write(open_as(), 10)
    write(open_as(), 20)
    assert open_as(round_=2).latest() == CheckpointId(1, 1, 20)
    assert read(open_as(round_=2)) == "20"


def test_each_step_that_is_published_is_told(open_as):
    saved, told = open_as(), []
    saved.on_saved = told.append
    write(saved, 10)
    with pytest.raises(OSError, match="disk"), saved.writing(20):
        raise OSError("disk")
    assert told == [10]


def test_a_newer_round_goes_before_more_steps_of_an_older_one(open_as):
    write(open_as(round_=1), 900)
    write(open_as(round_=2), 100)
    write(open_as(round_=1), 950)
    assert read(open_as()) == "100"


def test_a_newer_attempt_goes_before_any_round_of_an_older_one(open_as):
    write(open_as(attempt=1, round_=50), 900)
    write(open_as(attempt=2, round_=1), 100)
    assert open_as().latest() == CheckpointId(2, 1, 100)


def test_a_writer_whose_world_is_over_publishes_nothing(open_as):
    with pytest.raises(Fenced, match="round 3 has formed"):
        write(open_as(round_=2, newest=3), 10)
    assert open_as().latest() is None


def test_what_is_written_by_other_means_may_have_the_names_of_checkpoints(open_as):
    names = [open_as(round_=5).name(800), open_as(attempt=2, round_=1).name(700)]
    write(open_as(attempt=2, round_=2), 750)
    names += [open_as().latest().name, open_as(job="again").name(760)]
    assert names == sorted(names)
    assert names[-1] == "a0003-r000001-s000000000760"


def test_what_is_written_by_other_means_may_ask_the_fence_alone(open_as):
    open_as(round_=3, newest=3).fence()
    with pytest.raises(Fenced):
        open_as(round_=2, newest=3).fence()


def test_a_writer_of_the_present_world_and_one_that_cannot_know_publish(open_as):
    write(open_as(round_=3, newest=3), 10)
    write(open_as(round_=3, newest=None), 11)
    assert open_as().latest() == CheckpointId(1, 3, 11)


def test_a_writer_that_fails_in_the_middle_leaves_nothing(open_as, tmp_path):
    def fail():
        with open_as().writing(10) as directory:
            (directory / "half").write_text("x")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert open_as().latest() is None
    assert not list((tmp_path / "kept").iterdir())


def test_a_later_job_continues_from_the_last_ones_checkpoints_and_goes_before_them(open_as):
    write(open_as(attempt=3, round_=7), 100)
    write(open_as(job="again", attempt=1, round_=1), 150)
    assert read(open_as()) == "150"
    write(open_as(job="again", attempt=1, round_=2), 160)
    write(open_as(job="again", attempt=1, round_=1), 170)
    assert open_as().latest() == CheckpointId(4, 2, 160), "all worlds of a job count from the same number"
    write(open_as(job="again", attempt=2, round_=1), 165)
    write(open_as(job="third", attempt=1, round_=1), 165, "third")
    assert read(open_as()) == "third"


def test_a_program_that_is_no_job_counts_no_attempts(open_as):
    write(open_as(job=""), 10)
    write(open_as(job=""), 20)
    assert open_as().latest() == CheckpointId(1, 1, 20)


def test_what_killed_writers_of_older_worlds_have_left_is_removed(open_as, keeper, s3, tmp_path):
    write(open_as(), 10)
    left = open_as().writing(20)
    left.__enter__()  # its process is killed: nothing of the context runs
    half = "jobs/bert/files/a0001-r000001-s000000000020/ab/state.pt"
    s3.put_object(Bucket="bucket", Key=half, Body=b"half")
    (tmp_path / "kept" / "a0001-r000001-s000000000015").mkdir()
    assert any(path.name.startswith(".draft-") for path in (tmp_path / "kept").iterdir())
    write(open_as(round_=2), 30)
    assert not any(path.name.startswith(".draft-") for path in (tmp_path / "kept").iterdir())
    assert keeper.remains() == []
    assert sorted(keeper.checkpoint_ids()) == [CheckpointId(1, 1, 10), CheckpointId(1, 2, 30)]


def test_a_draft_of_the_same_world_and_one_of_another_job_stay(open_as, tmp_path):
    with open_as(round_=2).writing(10), open_as(job="tune").writing(10), open_as(round_=2).writing(20):
        assert len(list((tmp_path / "kept").glob(".draft-*"))) == 3


class KeepsAll(DirectoryStore):
    """A store whose owner may not delete."""

    def remove(self, *_):
        raise PermissionError("no s3:DeleteObject")


def test_a_checkpoint_is_saved_although_older_ones_cannot_be_removed(tmp_path, caplog):
    checkpoints = Checkpoints(KeepsAll(tmp_path), 1, 1, lambda: None, tmp_path)
    for step in (10, 20):
        write(checkpoints, step, keep=1)
    assert read(checkpoints) == "20"
    assert "older checkpoints could not be removed: PermissionError: no s3:DeleteObject" in caplog.text


def test_of_two_writers_of_one_checkpoint_the_first_stays_whole(open_as):
    write(open_as(), 10, "first")
    write(open_as(), 10, "second")
    assert read(open_as()) == "first"


def test_only_as_many_stay_as_were_asked_for_and_never_a_newer_one_goes(open_as, keeper):
    write(open_as(round_=2), 5)
    for step in (10, 20, 30):
        write(open_as(round_=1), step, keep=2)
    assert sorted(keeper.checkpoint_ids()) == [CheckpointId(1, 1, 20), CheckpointId(1, 1, 30), CheckpointId(1, 2, 5)]


def test_a_copy_of_a_directory_that_lacks_a_file_is_no_checkpoint(tmp_path):
    keeper = DirectoryStore(tmp_path)
    checkpoints = Checkpoints(keeper, 1, 1, lambda: None, tmp_path)
    write(checkpoints, 10)
    write(checkpoints, 20)
    (tmp_path / CheckpointId(1, 1, 20).name / "deep" / "state.pt").unlink()
    assert checkpoints.latest() == CheckpointId(1, 1, 10)


def test_others_may_read_a_directory_that_this_process_lets_them_read(tmp_path):
    write(Checkpoints(DirectoryStore(tmp_path), 1, 1, lambda: None, tmp_path), 10)
    (tmp_path / "like").mkdir()
    published = tmp_path / CheckpointId(1, 1, 10).name
    assert stat.S_IMODE(published.stat().st_mode) == stat.S_IMODE((tmp_path / "like").stat().st_mode)


class LostResponses:
    """An S3 client that sends each list twice, as botocore does after a lost response."""

    def __init__(self, client):
        self._client = client

    def __getattr__(self, name):
        return getattr(self._client, name)

    def put_object(self, **request):
        if "IfNoneMatch" in request:
            self._client.put_object(**request)
        return self._client.put_object(**request)


def test_a_list_that_was_sent_twice_keeps_its_files(s3, tmp_path):
    checkpoints = Checkpoints(S3Store(LostResponses(s3), "s3://bucket/bert"), 1, 1, lambda: None, tmp_path)
    write(checkpoints, 10)
    assert read(checkpoints) == "10"


def test_files_in_s3_without_a_list_are_no_checkpoint(s3):
    keeper = S3Store(s3, "s3://bucket/bert")
    s3.put_object(Bucket="bucket", Key=f"bert/files/{CheckpointId(1, 1, 10).name}/ab/state.pt", Body=b"x")
    assert keeper.checkpoint_ids() == []


def test_a_list_in_s3_that_leads_outside_is_refused(s3, tmp_path):
    keeper, mark = S3Store(s3, "s3://bucket/bert"), CheckpointId(1, 1, 10)
    body = b'{"writer": "ab", "files": {"../../evil": 1}}'
    s3.put_object(Bucket="bucket", Key=f"bert/complete/{mark.name}.json", Body=body)
    with pytest.raises(ValueError, match="outside"):
        keeper.fetch(mark, tmp_path)


@pytest.mark.parametrize("uri", ["/opt/ml", "https://bucket/x", "s3://"])
def test_an_address_that_is_not_s3s_is_refused(uri):
    with pytest.raises(ValueError, match="not an S3 URI"):
        S3Store(None, uri)


def test_names_sort_as_marks_do():
    checkpoint_ids = [CheckpointId(1, 2, 30), CheckpointId(1, 10, 4), CheckpointId(2, 1, 1), CheckpointId(1, 2, 4)]
    assert sorted(mark.name for mark in checkpoint_ids) == [mark.name for mark in sorted(checkpoint_ids)]
    assert [CheckpointId.parse(mark.name) for mark in checkpoint_ids] == checkpoint_ids
    assert CheckpointId.parse("lost+found") is None
