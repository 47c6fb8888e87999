"""HTTP client of the queue's API: one method per route, typed responses, signed requests and retries.

It does not depend on the SageMaker SDK, prints nothing, and connects at the first call.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from http import HTTPStatus
from socket import gaierror
from ssl import SSLError
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlencode, urlsplit

import httpx

from trainmaster import __version__
from trainmaster.client.api.config import REGION_HINT, Address, find_address, given_address
from trainmaster.client.api.core_session import CoreSession
from trainmaster.client.api.credentials import login_hint
from trainmaster.client.api.errors import Conflict, Forbidden, NotConfigured, NotFound, Refused, Unreachable
from trainmaster.client.api.quiet import quiet
from trainmaster.client.api.responses import EXPIRED_TYPE, result_of
from trainmaster.client.api.retry import Retry
from trainmaster.client.api.signing import SigV4
from trainmaster.client.views.types import (
    AuditEntryView,
    AuditPageView,
    ExportPageView,
    ImportReportView,
    JobDetailView,
    JobsPageView,
    JobView,
    ManagerStateView,
    PlanView,
    PoolSetting,
    PoolsView,
    PoolView,
    QueuePageView,
    RemovalView,
    RendezvousView,
    ScheduleView,
    SettingsInForceView,
    SharesView,
    SubmissionView,
    UsageView,
)
from trainmaster.client.views.usage import joined
from trainmaster.domain.release import VERSION_HEADER, service_problem

if TYPE_CHECKING:
    import boto3
    from typing_extensions import Self

    from trainmaster.client.sweeps.run import SweepRun
    from trainmaster.client.sweeps.sweep import Sweep

log = logging.getLogger(__name__)

# API Gateway times out an integration after 29 seconds; wait a little longer for its response.
_TIMEOUT = httpx.Timeout(32.0, connect=5.0)
_NOTICE_SECONDS = 10.0
_PRIVATE_HINT = "A private API is reachable only from its VPC, or through its VPC endpoint's host name with the API ID."


class ApiClient:
    """Client of the queue's API. `ApiClient()` finds the address by itself (see `config.find_address`).

    `url` ends in the stage. `api_id` is needed for a private API behind a VPC endpoint's own host name. `session`
    (of boto3; if None, one from the environment) provides credentials and the Region. `transport` replaces the network.
    `on_wait` is called with the API's host, in another thread, once a call has taken `notice_seconds`.
    Every method raises `ApiError` or a subclass. Thread-safe, as httpx's client is.
    """

    def __init__(  # noqa: PLR0913 - the others are for tests and special networks
        self,
        url: str | None = None,
        *,
        api_id: str | None = None,
        session: boto3.session.Session | CoreSession | None = None,
        transport: httpx.BaseTransport | None = None,
        retry: Retry | None = None,
        timeout: httpx.Timeout = _TIMEOUT,
        environ: Mapping[str, str] = os.environ,
        on_wait: Callable[[str], object] | None = None,
        notice_seconds: float = _NOTICE_SECONDS,
    ) -> None:
        self._on_wait, self._notice_seconds = on_wait, notice_seconds
        self._url, self._api_id, self._given_session = url, api_id, session
        self._transport, self._timeout, self._environ = transport, timeout, environ
        self._retry = retry or Retry()
        self.service_version: str | None = None
        """Version of the service; None before its first response."""

    # -- jobs

    def submit(self, request: Mapping[str, Any]) -> SubmissionView:
        """Submit a CreateTrainingJob request to the queue. Idempotent: the same name and body return the same job.

        `submittedBefore` is False if an earlier attempt of this very call may have submitted it.

        Raises Refused (InvalidRequest, NeverFits, UnknownOption, TooLarge), Forbidden (RoleNotAllowed) and
        Conflict (NameTaken).
        """
        answer, retried = self._exchange("POST", "/add-job", body=request)
        return cast(
            "SubmissionView", {**answer, "submittedBefore": bool(answer.get("submittedBefore")) and not retried}
        )

    def submit_kind(self, kind: str, request: Mapping[str, Any]) -> Any:
        """Submit a request for a job of another kind than training. Raises as `submit`."""
        return self._call("POST", f"/{quote(kind, safe='')}-jobs", body=request)

    def sweep(self, sweep: Sweep) -> SweepRun:
        """Submit the trials of a sweep that the queue does not have yet, and return the running sweep.

        With Optuna, only the first ones: `SweepRun.wait` asks for the others. Raises as `submit`.
        """
        from trainmaster.client.sweeps.run import SweepRun

        run = SweepRun(self, sweep)
        run.submit()
        return run

    def plan(self, request: Mapping[str, Any]) -> PlanView:
        """Return the forecast for the request. Raises as `submit`."""
        return cast("PlanView", self._call("POST", "/plan", body=request))

    def job(self, name: str, *, why: bool = False) -> JobDetailView:
        """Return a job with its attempts, history and request, and with `why` why it waits. Raises NotFound."""
        query = {"why": "true"} if why else None
        return cast("JobDetailView", self._call("GET", _path(name), query=query))

    def rendezvous(self, name: str) -> RendezvousView:
        """Return the rendezvous state of the nodes of the job's newest attempt. Raises NotFound."""
        return cast("RendezvousView", self._call("GET", f"{_path(name)}/rendezvous"))

    def jobs(  # noqa: PLR0913 -- one parameter for each filter
        self,
        state: str | Iterable[str] | None = None,
        share: str | None = None,
        pool: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        *,
        mine: bool = False,
        since: str | None = None,
        prefix: str | None = None,
        kind: str | None = None,
    ) -> JobsPageView:
        """Return one page of jobs: active, waiting, then finished (newest first). `state` may name several.

        `mine` selects the caller's own jobs, `since` those that entered the queue from then on (ISO 8601 with a zone),
        `prefix` those whose names begin so, `kind` those of a kind, such as `training`.
        """
        states = state if isinstance(state, str) or state is None else ",".join(state)
        own = "true" if mine else None
        query = {"state": states, "share": share, "pool": pool, "mine": own, "since": since, "prefix": prefix}
        page = {"kind": kind, "limit": limit, "cursor": cursor}
        return cast("JobsPageView", self._call("GET", "/jobs", query=query | page))

    def all_jobs(  # noqa: PLR0913 -- one parameter for each filter
        self,
        state: str | Iterable[str] | None = None,
        share: str | None = None,
        pool: str | None = None,
        *,
        mine: bool = False,
        since: str | None = None,
        prefix: str | None = None,
        kind: str | None = None,
    ) -> Iterator[JobView]:
        """Iterate over all jobs that `jobs` would return, fetching pages as needed."""
        states = [state] if isinstance(state, str) else list(state or ()) or None
        return _pages(
            lambda cursor: self.jobs(
                states, share, pool, cursor=cursor, mine=mine, since=since, prefix=prefix, kind=kind
            )
        )

    def queue(self, limit: int | None = None, cursor: str | None = None) -> QueuePageView:
        """Return one page of waiting jobs in the order in which passes consider them, and the pools."""
        return cast("QueuePageView", self._call("GET", "/queue", query={"limit": limit, "cursor": cursor}))

    def all_queued(self) -> Iterator[JobView]:
        """Iterate over all waiting jobs in order, fetching pages as needed."""
        return _pages(lambda cursor: self.queue(cursor=cursor))

    def schedule(
        self,
        start: str | None = None,
        end: str | None = None,
        *,
        pool: str | None = None,
        limit: int | None = None,
    ) -> ScheduleView:
        """Return past attempts, running jobs and planned starts of a period, by pool; times are ISO 8601 with a zone.

        By default from a day ago until two days from now, at most `limit` intervals of each pool.
        """
        query = {"from": start, "to": end, "pool": pool, "limit": limit}
        return cast("ScheduleView", self._call("GET", "/schedule", query=query))

    def shares(self) -> SharesView:
        """Return what each share owns, uses, lends and borrows in each pool, with its usage and its budget."""
        return cast("SharesView", self._call("GET", "/shares"))

    def usage(
        self,
        start: str | None = None,
        end: str | None = None,
        *,
        by: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> UsageView:
        """Return a part of the usage in a period by share, pool, user or priority; times are ISO 8601 with a zone.

        By default of the last week, by share, and of the first 500 jobs; `nextCursor` names the next part.
        """
        query = {"from": start, "to": end, "by": by, "limit": limit, "cursor": cursor}
        return cast("UsageView", self._call("GET", "/usage", query=query))

    def whole_usage(self, start: str | None = None, end: str | None = None, *, by: str | None = None) -> UsageView:
        """Return the whole usage in a period, adding up all its parts."""
        whole = self.usage(start, end, by=by)
        while (cursor := whole["nextCursor"]) is not None:
            whole = joined(whole, self.usage(whole["from"], whole["to"], by=by, cursor=cursor))
        return whole

    def cancel(self, name: str, reason: str | None = None) -> JobView:
        """Cancel a waiting job, or stop a running one for good, with a reason for its history.

        Raises NotFound, and Conflict if it has ended.
        """
        query = {"reason": reason} if reason else None
        return self._change("DELETE", name, None, lambda job: job["jobState"] in ("cancelled", "stopped"), query)

    def purge(self, name: str) -> None:
        """Delete an ended job with its request and its history. Raises NotFound, and Conflict if it has not ended."""
        try:
            self._call("DELETE", _path(name), query={"purge": "true"})
        except NotFound as error:
            if not error.retried:
                raise

    def change(
        self,
        name: str,
        *,
        priority: int | None = None,
        hold: bool | None = None,
        min_instances: int | None = None,
        max_instances: int | None = None,
    ) -> JobView:
        """Change a job's priority or the bounds of its size, hold it, or release it (`hold=False`).

        Raises NotFound, Refused, Conflict.
        """
        bounds = {"minInstances": min_instances, "maxInstances": max_instances}
        changes = {"priority": priority, "hold": hold, **bounds}
        body = {key: value for key, value in changes.items() if value is not None}
        return self._change("PATCH", name, body, lambda job: _has_values(job, body))

    def answer_resize(self, name: str, answer: Mapping[str, Any]) -> JobView:
        """Report the outcome of a custom resize: see `docs/how-to/custom-resize.md`. Raises Conflict."""
        return cast("JobView", self._call("POST", f"{_path(name)}/resize", body=answer))

    def report_speed(self, name: str, instances: int, per_second: float) -> JobView:
        """Report how fast an elastic job works at its size: see `docs/how-to/elastic-training.md`. Raises Conflict."""
        body = {"instances": instances, "perSecond": per_second}
        return cast("JobView", self._call("POST", f"{_path(name)}/speed", body=body))

    # -- pools

    def pools(self, *, history: bool = False) -> PoolsView:
        """Return the pools and their version; with `history`, also recent changes to managed pools."""
        return cast("PoolsView", self._call("GET", "/pools", query={"history": "true"} if history else None))

    def set_pools(self, pools: Iterable[PoolSetting], version: int | None = None) -> PoolsView:
        """Replace all pools; with `version`, only if they have not changed since. Raises Conflict (VersionConflict)."""
        body: dict[str, Any] = {"pools": list(pools)}
        if version is not None:
            body["version"] = version
        return cast("PoolsView", self._call("PUT", "/pools", body=body))

    def set_pool(self, name: str, setting: Mapping[str, Any]) -> PoolView:
        """Create or replace the pool of this name; absent members take defaults. Raises Refused, Conflict."""
        return cast("PoolView", self._call("PUT", _path(name, "pools"), body=setting))

    def change_pool(self, name: str, **changes: Any) -> PoolView:
        """Change members of a pool (`cap=3`, `draining=True`). Raises NotFound, Refused, Conflict."""
        return cast("PoolView", self._call("PATCH", _path(name, "pools"), body=changes))

    def remove_pool(self, name: str, *, force: bool = False) -> RemovalView:
        """Remove a pool. Raises NotFound; Conflict (PoolInUse) if jobs need it, usually unless `force` is set."""
        try:
            query = {"force": "true"} if force else None
            return cast("RemovalView", self._call("DELETE", _path(name, "pools"), query=query))
        except NotFound as error:
            if not error.retried:
                raise
            return {**self.pools(), "moved": 0, "stranded": 0, "more": True, "running": []}

    # -- settings

    def settings(self) -> SettingsInForceView:
        """Return all settings except the pools, and the version that both share."""
        return cast("SettingsInForceView", self._call("GET", "/settings"))

    def set_settings(self, document: Mapping[str, Any]) -> SettingsInForceView:
        """Replace the settings; if the document has a `version`, only if they have not changed since.

        Raises Refused (InvalidRequest, with the path of the invalid field) and Conflict (VersionConflict).
        """
        return cast("SettingsInForceView", self._call("PUT", "/settings", body=document))

    # -- the manager

    def manager(self) -> ManagerStateView:
        """Return whether the manager is paused, and the newest comparison of the table with SageMaker."""
        return cast("ManagerStateView", self._call("GET", "/manager"))

    def pause(self, reason: str) -> ManagerStateView:
        """Pause the manager. Raises Forbidden."""
        return cast("ManagerStateView", self._call("PUT", "/pause", body={"reason": reason}))

    def resume(self) -> ManagerStateView:
        """Resume the manager. Raises Forbidden."""
        return cast("ManagerStateView", self._call("DELETE", "/pause"))

    def restore(self, *, adopt: bool) -> ManagerStateView:
        """Have the paused manager compare the table with SageMaker. Raises Forbidden; Conflict if it is not paused."""
        return cast("ManagerStateView", self._call("POST", "/restore", body={"adopt": adopt}))

    # -- exports

    def export_page(self, limit: int | None = None, cursor: str | None = None) -> ExportPageView:
        """Return one page of an export: settings, pools, and waiting jobs with their requests. Raises Forbidden."""
        return cast("ExportPageView", self._call("GET", "/export", query={"limit": limit, "cursor": cursor}))

    def import_part(self, part: Mapping[str, Any]) -> ImportReportView:
        """Import a part of an export; idempotent. Raises Forbidden, Refused, Conflict (PoolInUse)."""
        return cast("ImportReportView", self._call("POST", "/import", body=part))

    # -- audit

    def audit(  # noqa: PLR0913 -- one parameter for each filter
        self,
        since: str | None = None,
        until: str | None = None,
        *,
        job: str | None = None,
        who: str | None = None,
        action: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AuditPageView:
        """Return one page of recorded changes, newest first; times are ISO 8601 with their zone."""
        query = {"since": since, "until": until, "job": job, "who": who, "action": action}
        return cast("AuditPageView", self._call("GET", "/audit", query={**query, "limit": limit, "cursor": cursor}))

    def all_audit_entries(self, **filters: str | None) -> Iterator[AuditEntryView]:
        """Iterate over all entries that `audit` would return, fetching pages as needed."""
        cursor: str | None = None
        while True:
            page = self.audit(**filters, limit=100, cursor=cursor)
            yield from page["entries"]
            cursor = page["nextCursor"]
            if cursor is None:
                return

    def openapi(self) -> dict[str, Any]:
        """Return the API's own OpenAPI document."""
        return cast("dict[str, Any]", self._call("GET", "/openapi.json"))

    # -- any route

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the JSON of a route's answer, for programs that forward requests. `path` is encoded already.

        Raises ApiError.
        """
        return self._call(method, path, query=query, body=body)

    def read_if_changed(
        self, path: str, tag: str | None, *, query: Mapping[str, object] | None = None
    ) -> tuple[Any, str | None]:
        """Return a route's answer with its `ETag`; None and the same tag if nothing has changed since that tag.

        An answer has no tag within seconds of a change. Raises ApiError.
        """
        headers = {} if tag is None else {"if-none-match": tag}
        response, attempts = self._request("GET", path, query=query, headers=headers)
        if response.status_code == HTTPStatus.NOT_MODIFIED:
            return None, tag
        return self._result(response, attempts), response.headers.get("etag")

    # -- transport

    @cached_property
    def session(self) -> boto3.session.Session | CoreSession:
        """The session that provides credentials and the Region."""
        return CoreSession() if self._given_session is None else self._given_session

    @cached_property
    def address(self) -> Address:
        """The API's address, found at first use. Raises NotConfigured."""
        return find_address(self._url, self._api_id, self.session, self._environ)

    @property
    def region(self) -> str:
        """The AWS Region of the queue, without a call: a stack is in the session's. Raises NotConfigured."""
        return self._region(given_address(self._url, self._api_id, self._environ) or Address(""))

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        http = self.__dict__.pop("_http", None)
        if http is not None:
            http.close()

    def __enter__(self) -> Self:
        """Return the client; the `with` statement closes it at its end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    @cached_property
    def _http(self) -> httpx.Client:
        address = self.address
        headers = {
            "user-agent": f"trainmaster/{__version__}",
            VERSION_HEADER: __version__,
            "accept": "application/json",
        }
        if address.api_id:
            headers["x-apigw-api-id"] = address.api_id
        auth = SigV4(self.session.get_credentials, self._region(address), self.session)
        # An address of this machine is called without the environment's proxies: its requests are not encrypted.
        return httpx.Client(
            auth=auth,
            headers=headers,
            timeout=self._timeout,
            transport=self._transport,
            trust_env=address.is_encrypted,
        )

    def _region(self, address: Address) -> str:
        region = address.region or self.session.region_name
        if not region:
            raise NotConfigured("No AWS Region is configured to sign requests for.", hint=REGION_HINT)
        return region

    def _change(
        self,
        method: str,
        name: str,
        body: Mapping[str, Any] | None,
        is_done: Callable[[JobView], bool],
        query: Mapping[str, object] | None = None,
    ) -> JobView:
        """Send a change; if a retried request gets a conflict, return the job if it already has the values.

        An earlier attempt whose response was lost may have carried out the change.
        """
        try:
            return cast("JobView", self._call(method, _path(name), query=query, body=body))
        except Conflict as error:
            if not error.retried or not is_done(job := self.job(name)):
                raise
            return job

    def _call(self, method: str, path: str, **members: Mapping[str, Any] | None) -> Any:
        """Return the answer to a request; see `_exchange`."""
        return self._exchange(method, path, **members)[0]

    def _exchange(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> tuple[Any, bool]:
        """Return the answer to a request, and whether it was sent more than once. Raises ApiError."""
        response, attempts = self._request(method, path, query=query, body=body)
        return self._result(response, attempts), attempts > 1

    def _result(self, response: httpx.Response, attempts: int) -> Any:
        """Return the answer in a response. Raises ApiError."""
        try:
            return result_of(response, retried=attempts > 1)
        except Forbidden as error:
            if error.type == EXPIRED_TYPE:
                error.hint = login_hint(self.session)
            raise

    def _request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[httpx.Response, int]:
        """Return the response to a request, whatever its status, and the number of attempts. Raises ApiError."""
        content = None if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        headers = dict(headers or {}) | ({"content-type": "application/json"} if body is not None else {})
        with quiet():
            url = self.address.url + path + _query(query or {})
            with self._noticed():
                response, attempts = self._send_with_retries(
                    lambda: self._http.request(method, url, content=content, headers=headers)
                )
        self._note_version(response)
        return response, attempts

    @contextmanager
    def _noticed(self) -> Iterator[None]:
        """Call `on_wait` with the API's host if the block takes longer than `_NOTICE_SECONDS`."""
        if self._on_wait is None:
            yield
            return
        host = urlsplit(self.address.url).netloc
        timer = threading.Timer(self._notice_seconds, self._on_wait, (host,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _note_version(self, response: httpx.Response) -> None:
        """Keep the service's version, and warn once if this client does not fit it."""
        found = response.headers.get(VERSION_HEADER)
        if found is None or found == self.service_version:
            return
        self.service_version = found
        if (problem := service_problem(found, __version__)) is not None:
            log.warning("%s", problem)

    def _send_with_retries(self, send: Callable[[], httpx.Response]) -> tuple[httpx.Response, int]:
        """Return the first response that is not retryable, or the last one, and the number of attempts."""
        for attempts in range(1, self._retry.max_attempts):
            response = _response_or_none(send)
            if response is not None and not self._retry.is_retryable(response):
                return response, attempts
            self._retry.pause(attempts, response)
        try:
            return send(), self._retry.max_attempts
        except httpx.TransportError as error:
            raise _unreachable(self.address, error) from error


# Paths and queries are encoded as Signature Version 4 requires, so that the signed and the sent request are equal.


def _path(name: str, collection: str = "jobs") -> str:
    """Return the path of a job or pool. Raises Refused for a name that is no segment of a path."""
    if name.strip(".") == "":
        noun = collection.rstrip("s")
        raise Refused(f"{name!r} is not the name of a {noun}.", type="InvalidRequest", field="name")
    return f"/{collection}/{quote(name, safe='')}"


def _query(query: Mapping[str, object]) -> str:
    """Return the query string with its `?`, without members that are None; a space is %20."""
    given = {key: str(value) for key, value in query.items() if value is not None}
    return "?" + urlencode(given, quote_via=quote, safe="-_.~") if given else ""


def _response_or_none(send: Callable[[], httpx.Response]) -> httpx.Response | None:
    try:
        return send()
    except httpx.TransportError:
        return None


def _unreachable(address: Address, error: Exception) -> Unreachable:
    """Return the error of a connection that failed, with what to do about its cause."""
    causes = [error, *_causes(error)]
    message = f"Could not connect to {address.url}: {error or type(error).__name__}."
    if any(isinstance(each, gaierror) for each in causes):
        hint = f"No host of that name was found. {_PRIVATE_HINT} Check the URL and your network's DNS."
    elif any(isinstance(each, SSLError) for each in causes):
        hint = "Check the URL, and that SSL_CERT_FILE names the certificates of your network's proxy if it has one."
    elif isinstance(error, httpx.ReadTimeout):
        message = f"{address.url} did not answer in time."
        hint = "Try again later. The service's alarms and logs show the cause."
    elif address.is_of_this_machine:
        hint = (
            "Nothing answers there. If it is the address of a local stack, `make stack` starts one and prints its own."
        )
    else:
        hint = f"{_PRIVATE_HINT} Check the URL, the endpoint's security group and your network."
    return Unreachable(message, hint=hint)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors that have led to this one, the nearest first."""
    below = error.__cause__ or error.__context__
    while below is not None:
        yield below
        below = below.__cause__ or below.__context__


def _has_values(job: JobView, changes: Mapping[str, Any]) -> bool:
    """Return whether a job has all the values of a change."""
    values = {**(job.get("elastic") or {}), "priority": job["priority"], "hold": job["jobState"] == "held"}
    return all(values.get(name) == value for name, value in changes.items())


def _pages(page_at: Callable[[str | None], JobsPageView]) -> Iterator[JobView]:
    cursor: str | None = None
    while True:
        page = page_at(cursor)
        yield from page["jobs"]
        cursor = page["nextCursor"]
        if cursor is None:
            return
