"""Regions worked on from the image's bytes to the merged result: every object once, wherever it lies."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import replace
from types import SimpleNamespace

import pytest
from imaging_stage import BUCKET, JOB, RESULTS, SECOND
from rasterio.warp import transform

from image_builders import an_image_work
from spots import NORTH, SIDE, STEP, UTM, WEST, boxes_of, geotiff, picture, scattered, squares
from trainmaster.domain.errors import Throttled
from trainmaster.images.domain.concurrency import concurrency_of, requests_of
from trainmaster.images.domain.leases import MAX_PAUSES
from trainmaster.images.domain.progress import dispatchable
from trainmaster.images.domain.request import Compression, Distillation, Output, Suppression, TileFormat
from trainmaster.images.domain.tiling import Cut, Window, regions
from trainmaster.images.domain.work import MERGE, Claim, RegionState, run_of
from trainmaster.images.pixels.work.models import HttpModel, RetryingModel
from trainmaster.images.pixels.work.region_outcome import NO_TIME, Outcome
from trainmaster.images.pixels.work.request_stats import RequestStats

CUT = Cut(region=(260, 260), tile=(120, 120), overlap=(24, 24))
SIZE = (460, 380)
WHOLE = Cut(region=(1000, 1000), tile=(120, 120), overlap=(24, 24))
"""One region of twenty tiles."""


@pytest.fixture
def objects():
    found = scattered(*SIZE, 20)
    return [*found, (0, 0), (SIZE[0] - SIDE, SIZE[1] - SIDE)] if (0, 0) not in found else found


@pytest.fixture
def play(s3, play_of, objects):
    s3.put_object(Bucket=BUCKET, Key="a/harbour.tif", Body=geotiff(picture(*SIZE, objects)))
    return play_of(f"s3://{BUCKET}/a/harbour.tif", SIZE, CUT)


def test_every_object_is_found_exactly_once_across_tiles_and_regions(play, objects):
    result = play.run_all()
    assert len(play.run.records) > 4
    assert boxes_of(result) == squares(objects)
    assert result["trainmaster"] == {"job": JOB, "regions": len(play.run.records) - 1, "failedRegions": []}


def test_objects_on_a_grid_that_cuts_every_tile_edge_are_found_once(play_of, web):
    """Overlapping tiles show many of them cut off: NMS alone would tell those twice."""
    objects = [(x, y) for x in range(3, 440, 29) for y in range(5, 360, 31)]
    web.files["grid.tif"] = geotiff(picture(*SIZE, objects))
    play = play_of(f"{web.url}/grid.tif", SIZE, CUT)
    assert boxes_of(play.run_all()) == squares(objects)


def test_the_result_is_where_the_request_wants_it_and_every_region_has_one_too(play):
    play.run_all()
    listed = [each["Key"] for each in play.s3.list_objects_v2(Bucket=RESULTS)["Contents"]]
    regions = len(play.run.records) - 1
    assert sorted(listed) == [
        f"ships/{JOB}/harbour.tif.geojson",
        *(f"ships/{JOB}/regions/{number:05}.geojson" for number in range(regions)),
    ]
    one = play.read(listed[1])
    assert one["type"] == "FeatureCollection"
    assert one["trainmaster"]["tilesDone"] == list(range(one["trainmaster"]["tiles"]))


def test_longitude_and_latitude_are_right_to_a_pixel(play):
    for feature in play.run_all()["features"]:
        low_x, low_y, high_x, high_y = feature["properties"]["imageBBox"]
        ring = feature["geometry"]["coordinates"][0]
        xs, ys = transform("EPSG:4326", UTM, [x for x, _ in ring], [y for _, y in ring])
        columns = [(x - WEST) / STEP for x in xs]
        rows = [(NORTH - y) / STEP for y in ys]
        assert (min(columns), max(columns)) == pytest.approx((low_x, high_x), abs=0.01)
        assert (min(rows), max(rows)) == pytest.approx((low_y, high_y), abs=0.01)


def test_exterior_rings_are_counterclockwise_on_earth_and_boxes_are_there_too(play):
    feature = play.run_all()["features"][0]
    ring = feature["geometry"]["coordinates"][0]
    doubled = sum(ax * by - bx * ay for (ax, ay), (bx, by) in itertools.pairwise(ring))
    assert doubled > 0
    assert feature["bbox"] == pytest.approx(
        [min(x for x, _ in ring), min(y for _, y in ring), max(x for x, _ in ring), max(y for _, y in ring)]
    )


def test_only_the_part_that_is_asked_for_is_looked_at(play, objects):
    play.task = replace(play.task, part=Window(100, 50, 300, 260))
    inside = [(x, y) for x, y in objects if x >= 100 and x + SIDE <= 400 and y >= 50 and y + SIDE <= 310]
    found = boxes_of(play.run_all())
    assert set(squares(inside)) <= set(found)
    assert all(box[0] >= 100 and box[2] <= 400 and box[1] >= 50 and box[3] <= 310 for box in found)


@pytest.mark.parametrize(
    ("form", "compression", "seen"),
    [
        (TileFormat.GEOTIFF, Compression.LZW, ("image/tiff", "GTiff")),
        (TileFormat.NITF, Compression.NONE, ("image/nitf", "NITF")),
        (TileFormat.NITF, Compression.J2K, ("image/nitf", "NITF")),
        (TileFormat.PNG, Compression.NONE, ("image/png", "PNG")),
        (TileFormat.JPEG, Compression.NONE, ("image/jpeg", "JPEG")),
    ],
)
def test_models_get_tiles_in_the_format_that_is_asked_for(play_of, web, form, compression, seen):
    web.files["a.tif"] = geotiff(picture(*SIZE, scattered(*SIZE, 5)))
    asked = {"tile_format": form, "tile_compression": compression}
    play = play_of(f"{web.url}/a.tif", SIZE, CUT, **asked)
    assert len(play.run_all()["features"]) == 5
    assert set(web.tiles) == {seen}


def test_an_image_without_georeference_has_results_in_pixels_only(play_of, web, objects):
    web.files["plain.tif"] = geotiff(picture(*SIZE, objects), crs=None, transform=None)
    play = play_of(f"{web.url}/plain.tif", SIZE, CUT)
    result = play.run_all()
    assert boxes_of(result) == squares(objects)
    assert {each["geometry"] for each in result["features"]} == {None}


def test_soft_nms_tells_every_object_once_where_skip_box_is_above_what_is_left(play, objects):
    play.task = replace(
        play.task, request=replace(play.request, distillation=Distillation(algorithm=Suppression.SOFT_NMS))
    )
    assert boxes_of(play.run_all()) == squares(objects)


def test_every_feature_has_the_requests_properties_and_its_source(play):
    play.task = replace(play.task, request=replace(play.request, feature_properties=({"mission": "m-1"}, {"level": 2})))
    properties = play.run_all()["features"][0]["properties"]
    assert (properties["mission"], properties["level"]) == ("m-1", 2)
    assert properties["image_id"] == f"{JOB}:s3://{BUCKET}/a/harbour.tif"
    assert properties["inferenceMetadata"]["jobId"] == JOB
    assert properties["sourceMetadata"] == [{"location": f"s3://{BUCKET}/a/harbour.tif", "format": "GTiff"}]


def test_w3_a_message_that_comes_twice_does_nothing_twice(play, web):
    play.create()
    assert play.turn(0) is Outcome.DONE
    before = len(web.tiles)
    assert play.turn(0) is Outcome.NOTHING
    assert len(web.tiles) == before
    assert play.told == [(run_of(JOB, 1), 0)]


def test_w3_two_workers_at_once_work_on_a_region_once(play, web):
    numbers = play.create()
    meet = threading.Barrier(2)
    outcomes = []

    def work():
        meet.wait()
        outcomes.append(play.turn(numbers[0]))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(outcomes) == [Outcome.DONE, Outcome.NOTHING]
    assert len(web.tiles) == play.run.records[0].region.tiles


def test_merging_waits_until_the_last_region_has_ended_and_is_dispatched_once(play):
    numbers = play.create()
    for number in numbers[:-1]:
        play.turn(number)
    assert play.turn(MERGE) is Outcome.NOTHING
    assert play.messages.sent == []
    play.turn(numbers[-1])
    assert play.messages.sent == [(JOB, 1, MERGE, 0.0)]


class Counted:
    """A workshop whose model keeps each request so many seconds, or until there are more at once than eight.

    All tiles look alike.
    """

    def __init__(self, workshop, task, seconds):
        self.seconds, self.too_many = seconds, threading.Event()
        self._workshop, self._lock = workshop, threading.Lock()
        image = workshop.image(task)
        chip = image.read(Window(0, 0, 10, 10))
        image.close()
        self._image = SimpleNamespace(
            read=lambda _: chip, bytes_of=image.bytes_of, driver=image.driver, source={}, georeference=None, close=int
        )
        self.now = self.most = self.asked = 0
        self.stats = RequestStats()

    def __getattr__(self, name):
        return getattr(self._workshop, name)

    def image(self, task):
        return self._image

    def model(self, task, wait):
        return self

    def features(self, tile):
        with self._lock:
            self.now, self.asked = self.now + 1, self.asked + 1
            self.most = max(self.most, self.now)
        if self.most > 8:
            self.too_many.set()
        self.too_many.wait(self.seconds)
        with self._lock:
            self.now -= 1
        return []


def max_concurrent(play, held, seconds):
    """Thirty regions of four tiles each, by as many workers as there are messages; the most requests at once."""
    laid = regions(play.task.part, play.task.cut)
    work = an_image_work(120, regions=30, tiles=120)
    run = play.runs.create(JOB, 1, laid, concurrency=concurrency_of(work, held))
    play.task = replace(play.task, workers=requests_of(work, held))
    play.workshop = model = Counted(play.workshop, play.task, seconds)
    play.queue.regions.dispatch(JOB, 1, dispatchable(run))
    taken, under_way = 0, set()
    with ThreadPoolExecutor(30) as lambdas:
        while under_way or taken < len(play.messages.sent):
            for _, _, number, _ in play.messages.sent[taken:]:
                taken += 1
                under_way.add(lambdas.submit(play.turn, number))
            ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            assert {each.result() for each in ended} <= {Outcome.DONE, Outcome.NOTHING}
    assert {each.state for each in play.run.records} == {RegionState.DONE}
    assert model.asked == 120
    return model.most


def test_an_image_of_thirty_regions_never_makes_more_requests_at_once_than_its_endpoint_of_eight_takes(play_of, web):
    web.files["large.tif"] = geotiff(picture(120, 100, []))
    play = play_of(f"{web.url}/large.tif", (120, 100), Cut(region=(20, 20), tile=(10, 10), overlap=(0, 0)), outputs=())
    assert max_concurrent(play, held=8, seconds=0.02) <= 8


def test_without_throttling_all_regions_of_an_image_are_worked_on_at_once(play_of, web):
    """So that the test before this one can fail."""
    web.files["large.tif"] = geotiff(picture(120, 100, []))
    play = play_of(f"{web.url}/large.tif", (120, 100), Cut(region=(20, 20), tile=(10, 10), overlap=(0, 0)), outputs=())
    assert max_concurrent(play, held=120, seconds=2.0) > 8


def test_a_tile_that_fails_for_good_fails_the_try_and_the_next_one_does_only_what_is_left(play, web):
    play.task = replace(play.task, cut=WHOLE)
    play.create()
    web.trouble = lambda number: 400 if number == 5 else None
    assert play.turn(0) is Outcome.AGAIN
    (message,) = play.messages.sent
    assert message == (JOB, 1, 0, 5.0)
    record = play.run.records[0]
    assert record.state is RegionState.PENDING
    assert "HTTP status 400" in record.reason
    done = record.tiles_done
    assert done >= 2
    before = len(web.tiles)
    assert play.turn(0) is Outcome.DONE
    assert len(web.tiles) - before == record.region.tiles - done


def test_w8_a_region_is_tried_again_and_one_that_fails_every_try_has_failed_and_the_others_are_merged_without_it(
    play, web
):
    numbers = play.create()
    web.trouble = lambda number: 422
    for tried in range(play.queue.attempts):
        outcome = play.turn(0)
        assert outcome is (Outcome.FAILED if tried + 1 == play.queue.attempts else Outcome.AGAIN)
    web.trouble = lambda number: None
    for number in numbers[1:]:
        assert play.turn(number) is Outcome.DONE
    assert play.turn(MERGE) is Outcome.DONE
    assert play.result()["trainmaster"]["failedRegions"] == [0]
    assert "HTTP status 422" in play.run.records[0].reason


def test_a_model_that_answers_no_geojson_fails_the_try_with_that_reason(play, web):
    web.files["index.html"] = b"<html>"
    play.task = replace(
        play.task, request=replace(play.request, processor=replace(play.request.processor, name=web.url))
    )
    web.look = lambda content_type, body: (200, b"<html>")
    play.create()
    assert play.turn(0) is Outcome.AGAIN
    assert play.run.records[0].reason.startswith("the model's answer is not JSON")


def test_throttling_lowers_the_endpoints_target_and_the_region_goes_on_later(play, web):
    play.task = replace(play.task, cut=WHOLE)
    play.create()
    play.workshop = Impatient(play.workshop)
    web.trouble = lambda number: 429 if number > 4 else None
    assert play.turn(0) is Outcome.AGAIN
    assert play.known.by_key[play.task.endpoint].pressure[""].factor == 0.5
    assert play.messages.sent == [(JOB, 1, 0, 30.0)]
    record = play.run.records[0]
    assert (record.tries, record.state) == (0, RegionState.PENDING)
    assert record.tiles_done >= 1


def test_an_images_server_that_asks_to_slow_down_pauses_the_region_and_leaves_the_endpoint_alone(play):
    play.task = replace(play.task, cut=WHOLE)
    play.create()
    busy = Raising(Throttled("http://images.example/a.tif: HTTP status 429"))
    image = SimpleNamespace(read=busy, bytes_of=lambda tile: 0, close=lambda: None)
    play.workshop = SimpleNamespace(image=lambda task: image, model=play.workshop.model, results=play.workshop.results)
    assert play.turn(0) is Outcome.AGAIN
    assert play.messages.sent == [(JOB, 1, 0, 30.0)]
    assert play.run.records[0].tries == 0
    assert play.known.by_key == {}


class Raising:
    """Whatever it is called with, it raises."""

    def __init__(self, error):
        self._error = error

    def __call__(self, *_):
        raise self._error


class AtOnce:
    """A workshop whose model asks again without any pause."""

    def __init__(self, workshop):
        self._workshop = workshop

    def __getattr__(self, name):
        return getattr(self._workshop, name)

    def model(self, task, wait):
        plain = HttpModel(self._workshop._http, task.request.processor.name, content_type="image/tiff")
        return RetryingModel(plain, wait=lambda seconds: False, spread=lambda: 0.5)


def test_w17_refusals_lower_the_target_also_where_retries_helped(play, web):
    play.task = replace(play.task, cut=Cut(region=(460, 380), tile=(140, 140), overlap=(24, 24)), workers=1)
    play.create()
    play.workshop = AtOnce(play.workshop)
    web.trouble = lambda number: 429 if number % 2 else None
    assert play.turn(0) is Outcome.DONE
    assert play.known.by_key[play.task.endpoint].pressure[""].factor < 1


def test_a_region_that_is_only_told_to_slow_down_spends_no_try_and_rests_ever_longer(play, web):
    """It is the endpoint's trouble: no tile was done in more tries than a region has."""
    play.create()
    play.workshop = Impatient(play.workshop)
    web.trouble = lambda number: 429
    for _ in range(play.queue.attempts + 1):
        assert play.turn(0) is Outcome.AGAIN
        *_, (_, _, number, after) = play.messages.sent
        assert (number, play.run.records[0].tries) == (0, 0)
        assert play.turn(0) is Outcome.NOTHING, "it pauses"
        play.queue.clock.sleep(after)
    assert [after for *_, after in play.messages.sent] == [30.0, 60.0, 120.0, 240.0]
    web.trouble = lambda number: None
    assert play.turn(0) is Outcome.DONE
    assert play.run.records[0].tries == 1


def test_after_a_tile_that_was_done_pauses_are_short_again(play, web):
    play.task = replace(play.task, cut=WHOLE)
    play.create()
    play.workshop = Impatient(play.workshop)
    asked = [0]
    for allowed, pause in ((0, 30.0), (0, 60.0), (6, 30.0), (0, 60.0)):
        asked[0] = len(web.tiles) + allowed
        web.trouble = lambda number: 429 if number > asked[0] else None
        assert play.turn(0) is Outcome.AGAIN
        assert play.messages.sent[-1] == (JOB, 1, 0, pause)
        play.queue.clock.sleep(pause)


def test_an_endpoint_that_never_takes_anything_fails_the_region_in_the_end(play, web):
    play.create()
    play.workshop = Impatient(play.workshop)
    web.trouble = lambda number: 429
    now = play.queue.clock.now()
    play.runs.begin(_claim(play), now, dead_before=now)
    play.runs.leave(_claim(play), now, reason="busy", final=False, pauses=MAX_PAUSES - 1)
    play.queue.clock.sleep(900)
    assert play.turn(0) is Outcome.AGAIN
    assert play.messages.sent[-1] == (JOB, 1, 0, 900.0)
    play.queue.clock.sleep(900)
    assert play.turn(0) is Outcome.FAILED
    reason = play.run.records[0].reason
    assert reason.startswith("its workers were throttled 29 times in a row, for over 6 hours: the model answered")


def test_trouble_of_another_kind_after_a_pause_counts_as_before(play, web):
    play.create()
    play.workshop = Impatient(play.workshop)
    web.trouble = lambda number: 429
    play.turn(0)
    play.queue.clock.sleep(30)
    web.trouble = lambda number: 422
    for _ in range(play.queue.attempts - 1):
        assert play.turn(0) is Outcome.AGAIN
    assert play.turn(0) is Outcome.FAILED


def test_w8_a_busy_model_is_asked_again_before_anything_fails(play, web):
    play.create()
    play.workshop = Impatient(play.workshop, waits=True)
    web.trouble = lambda number: 503 if number in (2, 4, 5) else None
    assert play.turn(0) is Outcome.DONE
    assert len(web.tiles) == play.run.records[0].region.tiles + 3
    assert play.known.by_key == {}


def test_before_its_time_is_over_a_worker_gives_the_region_back_and_the_try_does_not_count(play, web):
    play.task = replace(play.task, cut=WHOLE)
    play.create()
    assert play.turn(0, left=lambda: 900.0 if len(web.tiles) < 3 else 60.0) is Outcome.AGAIN
    record = play.run.records[0]
    assert (record.state, record.tries, record.reason) == (RegionState.PENDING, 0, "")
    assert 3 <= record.tiles_done < record.region.tiles
    assert play.messages.sent == [(JOB, 1, 0, 0.0)]
    before = len(web.tiles)
    assert play.turn(0) is Outcome.DONE
    assert len(web.tiles) - before == record.region.tiles - record.tiles_done


def test_w7_a_region_may_take_many_workers_time_as_long_as_it_gets_on(play, web, objects):
    play.task = replace(play.task, cut=WHOLE)
    play.create()
    turns = 0
    while (outcome := _short_turn(play, web, 0)) is Outcome.AGAIN:
        turns += 1
    assert outcome is Outcome.DONE
    assert turns > play.queue.attempts
    play.turn(MERGE)
    assert boxes_of(play.result()) == squares(objects)


def test_tiles_that_do_not_come_back_in_time_are_given_up_and_never_counted_as_done(play, web):
    play.task = replace(play.task, cut=WHOLE)
    play.create()
    back, hanging = threading.Event(), threading.Event()

    def hang(number):
        if number == 4:
            hanging.set()
            back.wait(timeout=30)

    web.trouble = hang
    try:
        assert play.turn(0, left=lambda: 10.0 if hanging.is_set() else 900.0) is Outcome.AGAIN
    finally:
        back.set()
    record = play.run.records[0]
    assert (record.state, record.tries) == (RegionState.PENDING, 0)
    assert record.tiles_done < record.region.tiles
    assert play.turn(0) is Outcome.DONE


def test_unexpected_errors_release_the_region(play):
    play.create()

    class Broken:
        def model(self, task, wait):
            raise KeyError("surprise")

    play.workshop = Broken()
    assert play.turn(0) is Outcome.AGAIN
    assert play.run.records[0].reason == "KeyError: 'surprise'"


def test_a_worker_without_time_for_a_single_tile_uses_up_a_try(play):
    play.create()
    for _ in range(play.queue.attempts):
        outcome = play.turn(0, left=lambda: 50.0)
    assert outcome is Outcome.FAILED
    assert play.run.records[0].reason == NO_TIME


def test_without_outputs_nothing_is_written_and_the_job_still_ends(play, objects):
    play.task = replace(play.task, request=replace(play.request, outputs=()))
    for number in play.create():
        assert play.turn(number) is Outcome.DONE
    assert play.turn(MERGE) is Outcome.DONE
    assert play.s3.list_objects_v2(Bucket=RESULTS)["KeyCount"] == 0
    assert play.run.records[-1].features >= len(objects)


def test_results_go_to_every_output(play, s3):
    both = (Output(bucket=RESULTS, prefix="ships"), Output(bucket=SECOND))
    play.task = replace(play.task, request=replace(play.request, outputs=both))
    first = play.run_all()
    body = play.s3.get_object(Bucket=SECOND, Key=f"{JOB}/harbour.tif.geojson")["Body"].read()
    assert len(first["features"]) == body.count(b'"imageBBox"')


def test_a_bucket_that_is_not_there_fails_the_region_at_once(play):
    play.task = replace(play.task, request=replace(play.request, outputs=(Output(bucket="nowhere-at-all"),)))
    play.create()
    assert play.turn(0) is Outcome.FAILED
    assert "nowhere-at-all" in play.run.records[0].reason


def test_an_image_that_has_gone_fails_the_region_at_once(play):
    play.create()
    play.s3.delete_object(Bucket=BUCKET, Key="a/harbour.tif")
    assert play.turn(0) is Outcome.FAILED
    assert "cannot be read" in play.run.records[0].reason


def test_an_image_that_was_replaced_by_a_smaller_one_fails_the_region(play):
    play.create()
    play.s3.put_object(Bucket=BUCKET, Key="a/harbour.tif", Body=geotiff(picture(200, 200, [])))
    assert play.turn(0) is Outcome.FAILED
    assert "smaller than when it was submitted" in play.run.records[0].reason


def test_a_stopped_run_ends_and_no_worker_begins(play, web):
    play.task = replace(play.task, cut=WHOLE)
    play.create()
    web.trouble = lambda number: play.runs.stop(JOB, 1) if number == 3 else None
    assert play.turn(0, beat_every=0.0) is Outcome.STOPPED
    assert play.told[-1][1] == 0, "the job that it was stopped for waits for its units"
    kept = play.read(f"ships/{JOB}/regions/00000.geojson")["trainmaster"]
    assert len(kept["tilesDone"]) == play.run.records[0].tiles_done >= 1
    assert len(web.tiles) < play.run.records[0].region.tiles
    assert play.run.records[0].worker == ""
    assert play.turn(0) is Outcome.NOTHING


def test_another_attempt_does_only_the_regions_that_are_left(play, web, objects):
    numbers = play.create()
    for number in numbers[:2]:
        play.turn(number)
    play.runs.stop(JOB, 1)
    before = len(web.tiles)
    result = play.run_all(attempt=2)
    left = [each.region.tiles for each in play.run.records[2:-1]]
    assert len(web.tiles) - before == sum(left)
    assert boxes_of(result) == squares(objects)


def test_a_worker_that_was_thought_dead_finishes_nothing(play, web):
    """Its region is another's by then, and done."""
    play.create()
    gone = threading.Event()

    def hang(number):
        if number == 1:
            play.queue.clock.sleep(600)
            gone.set()
            assert play.turn(0) is Outcome.DONE

    web.trouble = hang
    assert play.turn(0) in (Outcome.LOST, Outcome.STOPPED)
    assert gone.is_set()
    record = play.run.records[0]
    assert record.state is RegionState.DONE
    assert [number for _, number in play.told] == [0]
    kept = play.read(f"ships/{JOB}/regions/00000.geojson")["trainmaster"]
    assert kept["tilesDone"] == list(range(record.region.tiles))


def test_a_region_whose_workers_keep_dying_fails_with_a_word_about_it(play):
    play.create()
    for _ in range(play.queue.attempts):
        now = play.queue.clock.now()
        claim = _claim(play)
        assert play.runs.begin(claim, now, dead_before=now) is not None
        play.queue.clock.sleep(300)
    assert play.turn(0) is Outcome.FAILED
    assert play.run.records[0].reason == "its workers died 3 times"


def test_a_worker_says_that_it_lives_while_a_tile_takes_its_time(play, web):
    play.create()
    beats = []
    play.queue = replace(play.queue, runs=Counting(play.runs, beats))
    assert play.turn(0, beat_every=0.1) is Outcome.DONE
    assert len(beats) > 3


class Counting:
    """Runs, with the beats written down."""

    def __init__(self, runs, beats):
        self._runs, self._beats = runs, beats

    def __getattr__(self, name):
        return getattr(self._runs, name)

    def beat(self, claim, now, *, tiles_done):
        self._beats.append(now)
        return self._runs.beat(claim, now, tiles_done=tiles_done)


class Impatient:
    """A workshop whose models are asked again at once, or not at all."""

    def __init__(self, workshop, *, waits=False):
        self._workshop, self._waits = workshop, waits

    def __getattr__(self, name):
        return getattr(self._workshop, name)

    def model(self, task, wait):
        return self._workshop.model(task, lambda seconds: not self._waits)


def _short_turn(play, web, number):
    before = len(web.tiles)
    return play.turn(number, left=lambda: 900.0 if len(web.tiles) == before else 60.0)


def _claim(play):
    return Claim(job=JOB, attempt=1, number=0, worker="gone")
