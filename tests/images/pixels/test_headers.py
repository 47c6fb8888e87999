"""Headers of images: where they are read from, how little of them, and what is refused."""

from __future__ import annotations

import socket

import numpy as np
import pytest
import shapely
from imaging_stage import BUCKET, written
from rasterio.control import GroundControlPoint
from rasterio.io import MemoryFile
from rasterio.rpc import RPC
from rasterio.warp import transform

from aws_clients import aws_session
from spots import NORTH, STEP, UTM, WEST, geotiff, picture
from trainmaster.adapters.clock import SystemClock
from trainmaster.domain.errors import InvalidRequest, Throttled, Unavailable
from trainmaster.images.domain.tiling import Window
from trainmaster.images.pixels.http.url_policy import check_host, image_location
from trainmaster.images.pixels.reading.windows import Image
from trainmaster.images.pixels.wiring import Imaging
from trainmaster.images.ports import Header

SIZE = (300, 200)


@pytest.fixture
def headers(imaging, s3):
    return imaging.headers


def lonlat(columns, rows):
    """Longitudes and latitudes of pixels of generated images."""
    return transform(UTM, "EPSG:4326", [WEST + c * STEP for c in columns], [NORTH - r * STEP for r in rows])


def box_around(left, top, right, bottom):
    """WKT of a rectangle of pixels, on earth."""
    xs, ys = lonlat([left, right, right, left], [top, top, bottom, bottom])
    return shapely.Polygon(zip(xs, ys, strict=True)).wkt


def test_an_image_in_s3_is_read_where_boto3_finds_s3(headers, s3):
    s3.put_object(Bucket=BUCKET, Key="deep/er/a.tif", Body=geotiff(picture(*SIZE, [])))
    found = headers.read(f"s3://{BUCKET}/deep/er/a.tif")
    assert found == Header(width=300, height=200, part=Window(0, 0, *SIZE))


def test_an_image_in_s3_is_read_under_the_role_that_is_named(headers, session, s3):
    s3.put_object(Bucket=BUCKET, Key="a.tif", Body=geotiff(picture(*SIZE, [])))
    role = "arn:aws:iam::123456789012:role/reads-images"
    assert headers.read(f"s3://{BUCKET}/a.tif", role=role).width == 300


@pytest.mark.parametrize(
    ("driver", "georeferenced"), [("NITF", True), ("JPEG", False), ("PNG", False), ("JP2OpenJPEG", True)]
)
def test_all_formats_of_the_issue_are_read_over_http(headers, web, tmp_path, driver, georeferenced):
    name = "image-of-no-known-ending"
    web.files[name] = written(tmp_path / "a.jp2", picture(*SIZE, [(20, 20)]), driver)
    found = headers.read(f"{web.url}/{name}", interest=box_around(40, 30, 240, 130))
    assert (found.width, found.height) == (300, 200)
    assert (found.part != Window(0, 0, *SIZE)) is georeferenced


@pytest.mark.parametrize("name", ["large.tif", "large.ntf", "large.jp2", "large.png"])
def test_only_the_headers_bytes_are_read_and_no_file_beside_the_image(headers, web, tmp_path, name):
    noise = np.random.default_rng(1).integers(0, 255, (1, 1500, 1500), dtype="uint8")
    drivers = {"tif": "GTiff", "ntf": "NITF", "jp2": "JP2OpenJPEG", "png": "PNG"}
    web.files[name] = written(tmp_path / name, noise, drivers[name.rsplit(".", 1)[1]])
    assert headers.read(f"{web.url}/{name}").width == 1500
    assert sum(size for _, _, size in web.asked) <= 131_072 < len(web.files[name])
    assert {path for _, path, _ in web.asked} == {f"/{name}"}


def test_a_region_of_interest_becomes_the_pixels_that_it_covers(headers, web):
    """W2: such requests never ran in ModelRunner."""
    web.files["a.tif"] = geotiff(picture(*SIZE, []))
    found = headers.read(f"{web.url}/a.tif", interest=box_around(40, 30, 240, 130))
    part = found.part
    assert abs(part.column - 40) <= 1
    assert abs(part.row - 30) <= 1
    assert abs(part.column + part.width - 240) <= 1
    assert abs(part.row + part.height - 130) <= 1


def test_a_region_of_interest_is_cut_to_the_image(headers, web):
    web.files["a.tif"] = geotiff(picture(*SIZE, []))
    assert headers.read(f"{web.url}/a.tif", interest=box_around(-500, -500, 5000, 5000)).part == Window(0, 0, *SIZE)


@pytest.mark.parametrize(
    ("interest", "said"),
    [
        (box_around(1000, 1000, 1100, 1100), "outside the image"),
        ("POLYGON ((0 0, 1 0", "not WKT"),
        ("POLYGON EMPTY", "empty"),
        ("CIRCULARSTRING (7 53, 8 53, 8 54)", "not WKT"),
        ("POLYGON ((500 0, 501 0, 501 1, 500 0))", "not on the earth"),
        ("POINT (" + "1" * 200_000 + " 1)", "more than"),
    ],
)
def test_w2_a_region_of_interest_that_is_none_is_refused_with_its_field(headers, web, interest, said):
    web.files["a.tif"] = geotiff(picture(*SIZE, []))
    with pytest.raises(InvalidRequest, match=said) as caught:
        headers.read(f"{web.url}/a.tif", interest=interest)
    assert caught.value.field == "regionOfInterest"


@pytest.mark.parametrize("interest", ["POLYGON ((53 7, 54 7, 54 8, 53 7))", "POINT (8 153)"])
def test_who_writes_latitude_first_is_told_the_order(headers, web, interest):
    web.files["a.tif"] = geotiff(picture(*SIZE, []))
    with pytest.raises(InvalidRequest) as caught:
        headers.read(f"{web.url}/a.tif", interest=interest)
    assert caught.value.hint == "WKT coordinates are longitude first, then latitude, in degrees."


def test_without_georeference_a_region_of_interest_counts_as_none(headers, web):
    web.files["a.tif"] = geotiff(picture(*SIZE, []), crs=None, transform=None)
    found = headers.read(f"{web.url}/a.tif", interest="POLYGON ((0 0, 1 0, 1 1, 0 0))")
    assert found == Header(width=300, height=200, part=Window(0, 0, *SIZE))


def test_ground_control_points_and_sensor_models_say_where_pixels_are(headers, web):
    points = [GroundControlPoint(r, c, 10 + c * 1e-4, 45 - r * 1e-4) for r in (0, 100, 200) for c in (0, 150, 300)]
    web.files["gcps.tif"] = _moved(lambda image: setattr(image, "gcps", (points, "EPSG:4326")))
    web.files["rpcs.tif"] = _moved(lambda image: setattr(image, "rpcs", a_sensor_model()))
    interest = shapely.box(10.005, 44.985, 10.015, 44.995).wkt
    for name in ("gcps.tif", "rpcs.tif"):
        part = headers.read(f"{web.url}/{name}", interest=interest).part
        assert abs(part.column - 50) <= 1, name
        assert abs(part.row - 50) <= 1, name
        assert abs(part.width - 100) <= 2, name
        assert abs(part.height - 100) <= 2, name


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "/etc/passwd",
        "/vsicurl/http://x/y",
        "/vsizip/x.zip",
        "vsis3/bucket/key",
        "GTIFF_DIR:1:/tmp/x.tif",
        "ftp://host/a.tif",
        "s3://bucket",
        "s3:///key",
        "https:///a.tif",
        "http://a host/a.tif",
        "http://host/a\n.tif",
        "",
    ],
)
def test_nothing_but_s3_and_http_is_opened(url):
    with pytest.raises(InvalidRequest) as caught:
        image_location(url)
    assert caught.value.field == "imageUrls"


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.8.8", "::1", "0.0.0.0", "::ffff:127.0.0.1"),
        *("169.254.169.254", "169.254.170.2", "fe80::1%eth0", "fd00:ec2::254"),
        *("10.0.0.7", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fc00::1", "224.0.0.1", "ff02::1"),
        *("64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:4136:e378:8000:63bf:80ff:fffe"),
        *("::127.0.0.1", "fec0::1", "64:ff9b:1::a00:1"),
    ],
)
def test_only_public_addresses_are_places_of_images_or_models_whatever_they_are_called(address):
    with pytest.raises(InvalidRequest, match="resolve to a public address"):
        check_host("http://innocent.example/a.tif", field="imageUrls", resolve=lambda host: ["8.8.8.8", address])


@pytest.mark.parametrize("host", ["localhost", "LocalHost.", "runtime.localhost", "a.localhost.", "h%41.example"])
def test_names_that_curl_takes_for_this_machine_without_asking_are_refused_whatever_they_resolve_to(host):
    with pytest.raises(InvalidRequest, match="resolve to a public address"):
        check_host(f"http://{host}:9001/a.tif", field="imageUrls", resolve=lambda _: ["8.8.8.8"])


@pytest.mark.parametrize(
    ("trouble", "error"),
    [
        (socket.gaierror(socket.EAI_NONAME, "unknown"), InvalidRequest),
        (socket.gaierror(socket.EAI_AGAIN, "no answer"), Unavailable),
        (OSError("no network"), Unavailable),
    ],
)
def test_a_host_that_cannot_be_resolved_is_not_let_through(trouble, error):
    def resolve(host):
        raise trouble

    with pytest.raises(error):
        check_host("https://images.example/a.tif", field="imageUrls", resolve=resolve)


@pytest.mark.parametrize("host", ["a" * 64 + ".example", "a..example", "\u00fc" * 70 + ".example"])
def test_invalid_host_names_are_rejected(host):
    with pytest.raises(InvalidRequest, match="not a host name") as caught:
        check_host(f"https://{host}/a.tif", field="imageUrls")
    assert caught.value.field == "imageUrls"


def test_public_addresses_are_let_through():
    for address in ("8.8.8.8", "2a00:1450:4001::1", "64:ff9b::808:808", "::ffff:8.8.8.8"):
        check_host("https://images.example/a.tif", field="imageUrls", resolve=lambda host, it=address: [it])


def test_missing_objects_and_other_files_are_rejected(headers, web, s3):
    web.files["page.html"] = b"<html>" * 100
    s3.put_object(Bucket=BUCKET, Key="empty.tif", Body=b"")
    for url in (f"{web.url}/none.tif", f"s3://{BUCKET}/none.tif", "s3://no-such-bucket-here/a.tif"):
        with pytest.raises(InvalidRequest, match="cannot be read"):
            headers.read(url)
    for url in (f"{web.url}/page.html", f"s3://{BUCKET}/empty.tif"):
        with pytest.raises(InvalidRequest, match="not an image that can be read"):
            headers.read(url)


def test_an_image_that_refers_to_files_of_this_machine_is_no_image(headers, web, tmp_path):
    (tmp_path / "secret.tif").write_bytes(geotiff(picture(*SIZE, [])))
    web.files["a.tif"] = (
        f'<VRTDataset rasterXSize="9" rasterYSize="9"><VRTRasterBand dataType="Byte" band="1"><SimpleSource>'
        f"<SourceFilename>{tmp_path}/secret.tif</SourceFilename></SimpleSource></VRTRasterBand></VRTDataset>"
    ).encode()
    with pytest.raises(InvalidRequest, match="not an image that can be read"):
        headers.read(f"{web.url}/a.tif")


def test_an_image_that_leads_elsewhere_is_refused_before_gdal_follows(headers, web):
    web.files["inner.tif"] = geotiff(picture(*SIZE, []))
    web.leads["a.tif"] = f"{web.url}/inner.tif"
    with pytest.raises(InvalidRequest, match="redirects to another address"):
        headers.read(f"{web.url}/a.tif")
    assert "/inner.tif" not in {path for _, path, _ in web.asked}


@pytest.mark.parametrize(("status", "error"), [(403, InvalidRequest), (429, Throttled), (503, Unavailable)])
def test_trouble_that_may_pass_is_told_from_what_stays(headers, web, status, error):
    web.files["a.tif"] = status
    with pytest.raises(error):
        headers.read(f"{web.url}/a.tif")


def test_signatures_and_passwords_of_an_images_url_stand_in_no_reason(headers, web):
    web.files["page.tif?X-Amz-Signature=s3cr3t"] = b"<html>" * 100
    image = geotiff(np.random.default_rng(1).integers(0, 255, (1, 256, 256), dtype="uint8"))
    web.files["cut.tif?X-Amz-Signature=s3cr3t"] = image[:12_000]
    for name, ask in (
        ("none.tif", headers.read),
        ("page.tif", headers.read),
        (
            "cut.tif",
            lambda url: Image(headers._access, image_location(url, loopback=True), None).read(Window(0, 200, 50, 50)),
        ),
    ):
        with pytest.raises(InvalidRequest, match=name) as caught:
            ask(f"{web.url}/{name}?X-Amz-Signature=s3cr3t")
        assert "s3cr3t" not in str(caught.value)
    with pytest.raises(Unavailable) as down:
        headers.read("http://user:s3cr3t@127.0.0.1:9/a.tif?token=s3cr3t")
    assert "s3cr3t" not in str(down.value)


def test_a_server_that_is_down_is_trouble_that_may_pass(headers):
    with pytest.raises(Unavailable):
        headers.read("http://127.0.0.1:9/a.tif")


def test_an_image_that_is_replaced_is_seen(headers, web):
    web.files["a.tif"] = geotiff(picture(*SIZE, []))
    assert headers.read(f"{web.url}/a.tif").width == 300
    web.files["a.tif"] = geotiff(picture(500, 400, []))
    assert headers.read(f"{web.url}/a.tif").width == 500


def test_where_boto3_finds_s3_elsewhere_this_machine_is_refused(monkeypatch):
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    session = aws_session(aws_access_key_id="test", aws_secret_access_key="test", region_name="eu-central-1")
    imaging = Imaging(session, SystemClock(), "q")
    with pytest.raises(InvalidRequest, match="resolve to a public address"):
        imaging.headers.read("http://localhost:9001/2018-06-01/runtime/invocation/next")
    imaging.close()


def _moved(change):
    """A GeoTIFF that says where it is in another way."""
    with MemoryFile() as memory:
        with memory.open(driver="GTiff", width=300, height=200, count=1, dtype="uint8") as image:
            image.write(picture(*SIZE, []))
            change(image)
        return bytes(memory.getbuffer())


def a_sensor_model(line_off=0.0, samp_off=0.0):
    """One that is as simple as an affine transform: a pixel is 1e-4 degrees."""
    ones, zeros = [1.0] + [0.0] * 19, [0.0] * 20
    by_latitude, by_longitude = list(zeros), list(zeros)
    by_latitude[2], by_longitude[1] = -1.0, 1.0
    return RPC(
        height_off=0, height_scale=500, lat_off=45.0, lat_scale=0.1, long_off=10.0, long_scale=0.1,
        line_den_coeff=ones, line_num_coeff=by_latitude, line_off=line_off - 0.5, line_scale=1000,
        samp_den_coeff=ones, samp_num_coeff=by_longitude, samp_off=samp_off - 0.5, samp_scale=1000,
        err_bias=1, err_rand=1,
    )  # fmt: skip
