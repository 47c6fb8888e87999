"""A fake API that takes image jobs, too."""

from __future__ import annotations

from typing import Any

from fake_api import FakeApi, Refusal


def an_image(done: int = 0, failed: int = 0, total: int = 30, **changes: Any) -> dict[str, Any]:
    """Members that the API adds for an image job: `kind` and `details`."""
    work = {"endpoint": "ships", "variant": "AllTraffic", "load": 4 * total, "loadLeft": 4 * (total - done)}
    regions = {"total": total, "done": done, "failed": failed}
    return {"kind": "image", "details": work | {"tiles": 9 * total, "regions": regions} | changes}


class ImageFakeApi(FakeApi):
    """The fake API of a deployment with image jobs."""

    def _check(self, request: dict[str, Any]) -> dict[str, Any] | None:
        return None if "imageUrls" in request else super()._check(request)

    def post_image_jobs(self, request: dict[str, Any]) -> tuple[int, Any]:
        if not request.get("imageUrls"):
            raise Refusal(400, "InvalidRequest", "imageUrls is missing.", "imageUrls", "Add it.")
        old = self.jobs.get(request["jobId"])
        warnings = [f"{name} has no effect here and is ignored." for name in request if name == "color"]
        state = old["jobState"] if old else "received"
        return (200 if old else 202), {"jobName": request["jobId"], "state": state, "warnings": warnings}
