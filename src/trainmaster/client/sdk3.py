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

from trainmaster.client.hook import route_to_queue
from trainmaster.client.waiting import Progress

if TYPE_CHECKING:
    import boto3

    from trainmaster.client.api import ApiClient


class QueueSession(Session):  # type: ignore[misc]
    """A SageMaker Session whose training jobs go through the queue; every other call is the SDK's.

    `api` is an ApiClient or the API's URL (None: found as `ApiClient()` finds it). All other arguments are the SDK's.
    The boto session (the SDK's default one, if none is given) is routed as by `route_to_queue`, and with it the clients
    that `sagemaker.core` keeps: up to 3.22 those are one for the process, so that then every training job is routed.
    """

    def __init__(
        self,
        boto_session: boto3.session.Session | None = None,
        *args: Any,
        api: ApiClient | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(boto_session, *args, **kwargs)
        clients = [
            self.sagemaker_client,
            Base.get_sagemaker_client(session=self.boto_session),
            *_logs_client(),
        ]
        self._route = route_to_queue(self.boto_session, api, clients=clients)
        # `rich` redraws its panel below what is printed, so lines are never changed in place.
        self._route.announce = Progress(in_place=False)

    @property
    def queue(self) -> ApiClient:
        """The queue's API."""
        return self._route.api


def _logs_client() -> list[Any]:
    """The client through which the SDK reads logs; it wants a Region from the environment, or shows none."""
    try:
        return [CloudWatchLogsClient().client]
    except NoRegionError:
        return []
