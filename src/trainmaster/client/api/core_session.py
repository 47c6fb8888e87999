"""A session of botocore with what calls need of a boto3 session; importing boto3 takes longer than a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botocore.credentials import Credentials


class CoreSession:
    """Credentials, Region and clients of a profile, by default that of the environment. Raises ProfileNotFound."""

    def __init__(self, region_name: str | None = None, profile_name: str | None = None) -> None:
        from botocore.session import Session

        self._session = Session(profile=profile_name)
        if region_name is not None:
            self._session.set_config_variable("region", region_name)
        self._session.get_scoped_config()

    @property
    def region_name(self) -> str | None:
        """The AWS Region; None if none is configured."""
        region: str | None = self._session.get_config_variable("region")
        return region

    def get_credentials(self) -> Credentials | None:
        """Return the credentials; None if there are none."""
        return self._session.get_credentials()

    def regions(self, service: str, region: str) -> list[str]:
        """Return the Regions in which botocore knows a service, in the partition of the given one."""
        partition = self._session.get_partition_for_region(region)
        return list(self._session.get_available_regions(service, partition_name=partition))

    def client(self, service: str, region_name: str | None = None) -> Any:
        """Return a client for an AWS service."""
        return self._session.create_client(service, region_name=region_name)
