"""ZenML's step operator `trainmaster`: that of SageMaker, whose training jobs go through the queue."""

from __future__ import annotations

from pydantic import Field
from sagemaker.session import Session
from zenml.integrations.aws.flavors.sagemaker_step_operator_flavor import (
    SagemakerStepOperatorConfig,
    SagemakerStepOperatorFlavor,
)
from zenml.integrations.aws.step_operators import SagemakerStepOperator

from trainmaster import QueueSession


class TrainmasterStepOperatorConfig(SagemakerStepOperatorConfig):
    """Configuration of the step operator: SageMaker's, with the queue's address."""

    api_url: str | None = Field(
        default=None,
        description="URL of the queue's API. By default that of TRAINMASTER_API_URL, or of the stack `trainmaster`.",
    )


class TrainmasterStepOperator(SagemakerStepOperator):
    """Runs steps as jobs of the queue. Tags of `estimator_args` set their priority, share and other options."""

    _sagemaker_session: Session | None = None  # ZenML 0.98 reads it before it sets it

    def _get_sagemaker_session(self) -> Session:
        """Return a session of the same AWS identity whose training jobs go through the queue."""
        session = super()._get_sagemaker_session()
        api = getattr(self.config, "api_url", None)
        return QueueSession(session.boto_session, default_bucket=self.config.bucket, api=api)


class TrainmasterStepOperatorFlavor(SagemakerStepOperatorFlavor):
    """The flavor `trainmaster`, which `zenml step-operator flavor register` registers by the path of this class."""

    @property
    def name(self) -> str:
        """Name of the flavor."""
        return "trainmaster"

    @property
    def display_name(self) -> str:
        """Name of the flavor in the dashboard."""
        return "Trainmaster"

    @property
    def config_class(self) -> type[TrainmasterStepOperatorConfig]:
        """Class of the configuration."""
        return TrainmasterStepOperatorConfig

    @property
    def implementation_class(self) -> type[TrainmasterStepOperator]:
        """Class of the step operator."""
        return TrainmasterStepOperator
