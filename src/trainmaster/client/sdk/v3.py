"""QueueSession for the SageMaker SDK 3: `ModelTrainer.train` submits to the queue and waits for the whole of the job.

ModelTrainer passes the session's hook for create requests by (it serves pipelines only) and talks to SageMaker through
clients that `sagemaker.core` keeps for the process; so the boto session and those clients are routed instead. It must
be imported only where `sagemaker>=3` is installed, and leaves every call but training jobs to the SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import NoRegionError
from sagemaker.core.helper.session_helper import Session  # type: ignore[import-not-found]
from sagemaker.core.resources import Base  # type: ignore[import-not-found]
from sagemaker.core.utils.logs import CloudWatchLogsClient  # type: ignore[import-not-found]

from trainmaster.client.sdk.hook import Route, client_for
from trainmaster.client.sdk.waiting import Progress

if TYPE_CHECKING:
    import boto3

    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.sdk.elastic import ElasticOptions


class QueueSession(Session):  # type: ignore[misc]
    """A SageMaker Session whose training jobs go through the queue; every other call is the SDK's.

    `api` is an ApiClient or the API's URL (None: found as `ApiClient()` finds it). With `resources`, such as
    `accelerators=8,vcpus=96`, jobs ask for these instead of the instance type that they name; with `elastic` they may
    be resized. All other arguments are the SDK's.
    `queue` is the API. Routed are this session's own SageMaker client and the one that `sagemaker.core` keeps for its
    boto session. Where that is one client for the whole process (in 3.22), every ModelTrainer's jobs go to the queue.
    """

    def __init__(
        self,
        boto_session: boto3.session.Session | None = None,
        *args: Any,
        api: ApiClient | str | None = None,
        resources: str | None = None,
        elastic: ElasticOptions | None = None,
        **kwargs: Any,
    ) -> None:
        self._route: Route | None = None  # until the SDK has made the clients
        super().__init__(boto_session, *args, **kwargs)
        self.queue: ApiClient = client_for(api, self._boto_session)
        self._route = Route(self._boto_session, self.queue)
        self._route.resources = resources
        self._route.elastic = elastic
        # `rich` redraws its panel below what is printed, so lines are never changed in place.
        self._route.announce = Progress(in_place=False)
        self._route.attach(self.sagemaker_client.meta.events)
        for client in _logs_client():
            self._route.attach_logs(client.meta.events)

    @property
    def boto_session(self) -> boto3.session.Session:
        """The boto session, by which `TrainingJob.create` finds its client: so that one is routed before it is used."""
        if self._route is not None:
            self._route.attach(Base.get_sagemaker_client(session=self._boto_session).meta.events)
        return self._boto_session

    @boto_session.setter
    def boto_session(self, session: boto3.session.Session) -> None:
        self._boto_session = session


def _logs_client() -> list[Any]:
    """The process's client for logs; it takes its Region from the environment, and cannot be made without one."""
    try:
        return [CloudWatchLogsClient().client]
    except NoRegionError:
        return []
