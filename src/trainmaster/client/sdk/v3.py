"""QueueSession for SageMaker SDK 3: `ModelTrainer.train` submits to the queue and waits for the whole job.

ModelTrainer bypasses the session's hook for create requests (it serves pipelines only) and calls SageMaker through
clients that `sagemaker.core` keeps for the process, so the boto session and those clients are routed instead. Import it
only if `sagemaker>=3` is installed. All calls except those for training jobs are the SDK's.
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
    """SageMaker Session whose training jobs go through the queue; every other call is the SDK's.

    `api` is an ApiClient or the API's URL (None: found as `ApiClient()` finds it). With `resources`, such as
    `accelerators=8,vcpus=96`, jobs request these instead of the instance type that they name; with `elastic` they are
    elastic. All other arguments are the SDK's. `queue` is the API client.
    This session's own SageMaker client is routed, and the one that `sagemaker.core` keeps for its boto session. If that
    is one client for the whole process (as in 3.22), the jobs of every ModelTrainer go to the queue.
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
        self._route: Route | None = None  # until the SDK has created the clients
        super().__init__(boto_session, *args, **kwargs)
        self.queue: ApiClient = client_for(api, self._boto_session)
        self._route = Route(self._boto_session, self.queue)
        self._route.resources = resources
        self._route.elastic = elastic
        # `rich` redraws its panel below printed lines, so lines are not redrawn in place.
        self._route.on_describe = Progress(in_place=False)
        self._route.attach(self.sagemaker_client.meta.events)
        for events in (self._boto_session.events, *(client.meta.events for client in _logs_client())):
            self._route.attach_readers(events)

    @property
    def boto_session(self) -> boto3.session.Session:
        """The boto session. `TrainingJob.create` and tuners find their clients by it: these are routed before use.

        The SDK keeps one client for a session without a Region, and one for each Region that it is given.
        """
        if self._route is not None:
            for region in (None, self._boto_session.region_name):
                client = Base.get_sagemaker_client(session=self._boto_session, region_name=region)
                self._route.attach(client.meta.events)
        return self._boto_session

    @boto_session.setter
    def boto_session(self, session: boto3.session.Session) -> None:
        self._boto_session = session


def _logs_client() -> list[Any]:
    """Return the process's logs client; it takes its Region from the environment and needs one."""
    try:
        return [CloudWatchLogsClient().client]
    except NoRegionError:
        return []
