"""Settings of image jobs, from the variables of an environment or from a member of `TRAINMASTER_JOB_KINDS`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainmaster.domain.errors import InvalidRequest
from trainmaster.images.domain.endpoint import Limits
from trainmaster.images.domain.limits import VARIABLES, limits_of
from trainmaster.images.domain.urls import HOSTS_SETTING, parse_hosts
from trainmaster.images.service.plugins import parse_elevation, parse_sensor_models
from trainmaster.images.service.resource_access import ACCESS_SETTING, EVERYTHING, ResourceAccess, parse_access
from trainmaster.images.service.senders import SENDERS_SETTING, Senders, parse_senders

PREFIX = "TRAINMASTER_"
NAMES = ("IMAGE_QUEUE_URL", "IMAGE_DEAD_LETTER_QUEUE_URL", "REGION_QUEUE_URL", "API_ROLE_ID", "STATUS_TOPIC")
ROLES = ("REPORTERS", "REGION_SENDERS")
_PARSED = (HOSTS_SETTING, ACCESS_SETTING, SENDERS_SETTING)
PLUGINS = ("SENSOR_MODELS", "ELEVATION")
"""The settings besides those of `Limits`; as environment variables they may begin with `PREFIX`.

Those in `ROLES` are unique IDs of IAM roles, separated by commas.
"""


@dataclass(frozen=True, slots=True)
class ImageSettings:
    """A deployment's settings of image jobs.

    Attributes:
        image_queue_url: the SQS queue of image requests; "" in a function without access to it.
        image_dead_letter_queue_url: the SQS queue for requests that are refused, and for those of failed jobs.
        region_queue_url: the SQS queue of regions to process; "" in a function without access to it.
        api_role_id: unique id of the API's IAM role; the intake believes only this role about the caller of a request.
        status_topic: ARN of the SNS topic for status messages of image jobs; "" for none.
        reporters: IDs of the roles whose reports about runs the manager believes: those of the image functions.
        region_senders: IDs of the roles whose messages about regions the workers obey; empty if the deployment does
            not tell senders, as a simulator does not.
        model_hosts: hosts with ports whose models image jobs may call by URL; empty for none.
        resources: the models, roles, images and outputs that each caller may use.
        senders: those that may send requests to the image queue besides the API, and the callers that they are.
        sensor_models: plug-ins with sensor models of images, as `module:function`; the first that has one decides.
        elevation: heights of the ground: `s3://bucket/key` or the path of a raster, or a plug-in; "" for none.
        limits: defaults for the capacity of endpoints, and limits of processing.
    """

    image_queue_url: str = ""
    image_dead_letter_queue_url: str = ""
    region_queue_url: str = ""
    api_role_id: str = ""
    status_topic: str = ""
    reporters: tuple[str, ...] = ()
    region_senders: tuple[str, ...] = ()
    model_hosts: frozenset[str] = frozenset()
    resources: ResourceAccess = EVERYTHING
    senders: Senders = field(default_factory=Senders)
    sensor_models: tuple[str, ...] = ()
    elevation: str = ""
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def of_values(cls, values: Mapping[str, str]) -> ImageSettings:
        """Return the settings of these values. Raises `InvalidRequest` naming one that is unknown or wrong."""
        known = (*NAMES, *ROLES, *_PARSED, *PLUGINS, *VARIABLES)
        unknown = sorted(values.keys() - {*known})
        if unknown:
            hint = f"known: {', '.join(known)}"
            raise InvalidRequest(f"unknown setting {unknown[0]} of image jobs", field=unknown[0], hint=hint)
        given: dict[str, Any] = {name.lower(): values[name] for name in NAMES if name in values}
        given |= {name.lower(): tuple(filter(None, values.get(name, "").split(","))) for name in ROLES}
        given["model_hosts"] = parse_hosts(values.get(HOSTS_SETTING, ""))
        given["resources"] = parse_access(values.get(ACCESS_SETTING, ""))
        given["senders"] = parse_senders(values.get(SENDERS_SETTING, ""))
        given["sensor_models"] = parse_sensor_models(values.get("SENSOR_MODELS", ""))
        given["elevation"] = parse_elevation(values.get("ELEVATION", ""))
        return cls(**given, limits=limits_of(values))

    @property
    def account(self) -> str:
        """The deployment's AWS account, as the address of its image queue names it; "" without such a queue."""
        return self.image_queue_url.rpartition("/")[0].rpartition("/")[2]


def split_environment(environ: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the values of image jobs in the environment of one of their functions, and the rest of it."""
    ours = (*NAMES, *ROLES, *_PARSED, *PLUGINS)
    own = {name: name for name in (*ours, *VARIABLES)} | {PREFIX + name: name for name in ours}
    values = {own[name]: text for name, text in environ.items() if name in own}
    return values, {name: text for name, text in environ.items() if name not in own}
