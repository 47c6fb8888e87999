"""The HTTP client of the queue's API: one method a route, typed answers, signed requests, retries.

It must not know the SageMaker SDK or print anything, and makes no connection before the first call.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

import httpx

from trainmaster import __version__
from trainmaster.client.api.config import NAME_REGION, Address, find_address
from trainmaster.client.api.errors import Conflict, NotConfigured, NotFound, Unreachable
from trainmaster.client.api.responses import result_of
from trainmaster.client.api.retry import Retry
from trainmaster.client.api.routes import path_of, query_of
from trainmaster.client.api.signing import SigV4
from trainmaster.client.views.elastic import RendezvousView
from trainmaster.client.views.jobs import JobDetail, JobsPage, JobView, PlanView, QueuePage, SettingsView, Submission
from trainmaster.client.views.pools import PoolSetting, PoolsView, PoolView, RemovalView
from trainmaster.images.client.views import Received

if TYPE_CHECKING:
    import boto3

# API Gateway gives up on an integration after 29 seconds; a little longer hears its answer.
_TIMEOUT = httpx.Timeout(32.0, connect=5.0)


class ApiClient:
    """Speaks to the queue. `ApiClient()` finds the address by itself (see `config.find_address`).

    `url` ends in the stage; `api_id` is needed for a PRIVATE API through a VPC endpoint's own host name; `session` (a
    boto3 session, the default one if None) gives credentials and Region. `transport` replaces the network.
    Every method raises `ApiError` or one of its kinds. Thread-safe, as httpx's client is.
    """

    def __init__(  # noqa: PLR0913 - all but the address are for tests and special networks
        self,
        url: str | None = None,
        *,
        api_id: str | None = None,
        session: boto3.session.Session | None = None,
        transport: httpx.BaseTransport | None = None,
        retry: Retry | None = None,
        timeout: httpx.Timeout = _TIMEOUT,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._url, self._api_id, self._given_session = url, api_id, session
        self._transport, self._timeout, self._environ = transport, timeout, environ
        self._retry = retry or Retry()

    # -- jobs

    def submit(self, request: Mapping[str, Any]) -> Submission:
        """Put a CreateTrainingJob request into the queue; the same name and body again give the same answer.

        Raises Refused (InvalidRequest, NeverFits, UnknownOption, TooLarge), Forbidden (RoleNotAllowed) and
        Conflict (NameTaken).
        """
        return cast("Submission", self._call("POST", "/add-job", body=request))

    def submit_image(self, request: Mapping[str, Any]) -> Received:
        """Send a request for an image job (ModelRunner's JSON); it becomes a job once its image has been looked at.

        Raises Refused (InvalidRequest, TooLarge), Forbidden (ShareNotAllowed), Conflict (NameTaken, NotOffered).
        """
        return cast("Received", self._call("POST", "/image-jobs", body=request))

    def plan(self, request: Mapping[str, Any]) -> PlanView:
        """What would come of the request now; one for an image job has `imageSize`, too. Raises as `submit`."""
        return cast("PlanView", self._call("POST", "/plan", body=request))

    def job(self, name: str, *, why: bool = False) -> JobDetail:
        """A job with its attempts, history and request, and where asked for why it waits. Raises NotFound."""
        query = {"why": "true"} if why else None
        return cast("JobDetail", self._call("GET", path_of(name), query=query))

    def rendezvous(self, name: str) -> RendezvousView:
        """How the nodes of the job's newest attempt stand to each other. Raises NotFound."""
        return cast("RendezvousView", self._call("GET", f"{path_of(name)}/rendezvous"))

    def jobs(
        self,
        state: str | Iterable[str] | None = None,
        share: str | None = None,
        pool: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> JobsPage:
        """One page of jobs: active ones, waiting ones, then the newest finished. `state` may be several."""
        states = state if isinstance(state, str) or state is None else ",".join(state)
        query = {"state": states, "share": share, "pool": pool, "limit": limit, "cursor": cursor}
        return cast("JobsPage", self._call("GET", "/jobs", query=query))

    def all_jobs(
        self, state: str | Iterable[str] | None = None, share: str | None = None, pool: str | None = None
    ) -> Iterator[JobView]:
        """Every job that `jobs` would page through, fetched as needed."""
        states = [state] if isinstance(state, str) else list(state or ()) or None
        return _pages(lambda cursor: self.jobs(states, share, pool, cursor=cursor))

    def queue(self, limit: int | None = None, cursor: str | None = None) -> QueuePage:
        """One page of waiting jobs in the order in which they will be considered, and the pools."""
        return cast("QueuePage", self._call("GET", "/queue", query={"limit": limit, "cursor": cursor}))

    def all_queued(self) -> Iterator[JobView]:
        """Every waiting job, in order, fetched as needed."""
        return _pages(lambda cursor: self.queue(cursor=cursor))

    def cancel(self, name: str) -> JobView:
        """Cancel a waiting job, or stop a running one for good. Raises NotFound, and Conflict when it has ended."""
        return self._change("DELETE", name, None, lambda job: job["jobState"] in ("cancelled", "stopped"))

    def change(self, name: str, *, priority: int | None = None, hold: bool | None = None) -> JobView:
        """Give a job another priority, hold it back, or (`hold=False`) release it. Raises NotFound, Conflict."""
        asked = {"priority": priority, "hold": hold}
        body = {key: value for key, value in asked.items() if value is not None}
        return self._change("PATCH", name, body, lambda job: _is_so(job, priority, hold=hold))

    def answer_resize(self, name: str, answer: Mapping[str, Any]) -> JobView:
        """Say that a job has been resized, or will not be: see `docs/how-to/custom-resize.md`. Raises Conflict."""
        return cast("JobView", self._call("POST", f"{path_of(name)}/resize", body=answer))

    # -- pools

    def pools(self, *, history: bool = False) -> PoolsView:
        """The pools and their version; with `history` also what the manager has lately done to its own."""
        return cast("PoolsView", self._call("GET", "/pools", query={"history": "true"} if history else None))

    def set_pools(self, pools: Iterable[PoolSetting], version: int | None = None) -> PoolsView:
        """Replace the pools; with `version`, only if nobody changed them since. Raises Conflict (VersionConflict)."""
        body: dict[str, Any] = {"pools": list(pools)}
        if version is not None:
            body["version"] = version
        return cast("PoolsView", self._call("PUT", "/pools", body=body))

    def set_pool(self, name: str, setting: Mapping[str, Any]) -> PoolView:
        """Make this pool, or replace the one of its name; what is absent is as by default. Raises Refused, Conflict."""
        return cast("PoolView", self._call("PUT", path_of(name, "pools"), body=setting))

    def change_pool(self, name: str, **changes: Any) -> PoolView:
        """Change members of a pool (`cap=3`, `draining=True`); the others stay. Raises NotFound, Refused, Conflict."""
        return cast("PoolView", self._call("PATCH", path_of(name, "pools"), body=changes))

    def remove_pool(self, name: str, *, force: bool = False) -> RemovalView:
        """Remove a pool. Raises NotFound; Conflict (PoolInUse) where it is needed and, mostly, not forced."""
        try:
            query = {"force": "true"} if force else None
            return cast("RemovalView", self._call("DELETE", path_of(name, "pools"), query=query))
        except NotFound as error:
            if not error.retried:
                raise
            return {**self.pools(), "moved": 0, "stranded": 0, "more": True, "running": []}

    # -- settings

    def settings(self) -> SettingsView:
        """All settings but the pools, and the version of both."""
        return cast("SettingsView", self._call("GET", "/settings"))

    def set_settings(self, document: Mapping[str, Any]) -> SettingsView:
        """Replace the settings by those of a document; where it has a `version`, only if nobody changed them since.

        Raises Refused (InvalidRequest, the field named by its path) and Conflict (VersionConflict).
        """
        return cast("SettingsView", self._call("PUT", "/settings", body=document))

    def openapi(self) -> dict[str, Any]:
        """The API's own OpenAPI document."""
        return cast("dict[str, Any]", self._call("GET", "/openapi.json"))

    # -- the wire

    @cached_property
    def session(self) -> boto3.session.Session:
        """The boto3 session whose credentials and Region are used."""
        if self._given_session is not None:
            return self._given_session
        import boto3  # late: it costs more to import than all of this package

        return boto3.session.Session()

    @cached_property
    def address(self) -> Address:
        """Where the API is; found at the first use. Raises NotConfigured."""
        return find_address(self._url, self._api_id, self.session, self._environ)

    def close(self) -> None:
        """Give the connections back; the next call opens new ones."""
        http = self.__dict__.pop("_http", None)
        if http is not None:
            http.close()

    def __enter__(self) -> Self:
        """The client itself, closed at the end of the `with`."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    @cached_property
    def _http(self) -> httpx.Client:
        address = self.address
        headers = {"user-agent": f"trainmaster/{__version__}", "accept": "application/json"}
        if address.api_id:
            headers["x-apigw-api-id"] = address.api_id
        auth = SigV4(self.session.get_credentials, self._region(address))
        return httpx.Client(auth=auth, headers=headers, timeout=self._timeout, transport=self._transport)

    def _region(self, address: Address) -> str:
        region = address.region or self.session.region_name
        if not region:
            raise NotConfigured("No AWS Region to sign for.", hint=NAME_REGION)
        return region

    def _change(
        self, method: str, name: str, body: Mapping[str, Any] | None, done: Callable[[JobView], bool]
    ) -> JobView:
        """A change that may have happened on a try whose answer was lost: then a conflict is no error."""
        try:
            return cast("JobView", self._call(method, path_of(name), body=body))
        except Conflict as error:
            if not error.retried or not done(job := self.job(name)):
                raise
            return job

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        url = self.address.url + path + query_of(query or {})
        content = None if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        headers = {"content-type": "application/json"} if body is not None else {}
        response, tried = self._exchange(lambda: self._http.request(method, url, content=content, headers=headers))
        return result_of(response, retried=tried > 1)

    def _exchange(self, send: Callable[[], httpx.Response]) -> tuple[httpx.Response, int]:
        """The first answer that is worth reading (or the last one of all), and how many tries it took."""
        for tried in range(1, self._retry.tries):
            response = _answer_or_none(send)
            if response is not None and not self._retry.wants(response):
                return response, tried
            self._retry.pause(tried, response)
        try:
            return send(), self._retry.tries
        except httpx.TransportError as error:
            raise _unreachable(self.address, error) from error


def _answer_or_none(send: Callable[[], httpx.Response]) -> httpx.Response | None:
    try:
        return send()
    except httpx.TransportError:
        return None


def _unreachable(address: Address, error: Exception) -> Unreachable:
    return Unreachable(
        f"{address.url} cannot be reached: {error or type(error).__name__}.",
        hint="A PRIVATE API answers only inside its VPC (or through its VPC endpoint's name, with the API's id); "
        "check the URL, the endpoint's security group and your network.",
    )


def _is_so(job: JobView, priority: int | None, *, hold: bool | None) -> bool:
    right_priority = priority is None or job["priority"] == priority
    return right_priority and (hold is None or (job["jobState"] == "held") == hold)


def _pages(page_at: Callable[[str | None], JobsPage]) -> Iterator[JobView]:
    cursor: str | None = None
    while True:
        page = page_at(cursor)
        yield from page["jobs"]
        cursor = page["nextCursor"]
        if cursor is None:
            return
