"""A simulator of SageMaker training jobs, for tests, replays and the local stack.

    events: list[dict] = []
    simulator = SageMakerSimulator(limits={"ml.p5.48xlarge": 2}, sink=events.append)   # a virtual clock by default
    simulator.set_profile("job1*", training_seconds=30)     # or SIMULATOR_TRAINING_SECONDS=30 in the request
    sagemaker = simulator.client()                          # a boto3 client; it retries only with config=
    sagemaker.create_training_job(TrainingJobName="job1", ...)
    simulator.advance(120)                                  # events are delivered at their times, outside all locks
    sagemaker.stop_training_job(TrainingJobName="job1")     # Stopping, (Uploading,) Stopped
    simulator.faults.inject("CreateTrainingJob", "ThrottlingException", times=2)   # executed=True: lose the response
    simulator.on_call = lambda operation, phase: ...        # phase "before" or "after"; may raise
    simulator.set_capacity("ml.p5.48xlarge", 0); simulator.interrupt("spot-job"); simulator.run_until_idle()
    simulator.hostility = Hostility(describe_lag=30, lost_answers=0.1)   # Hostility() ends it

No deployed code imports it.
"""

from trainmaster.local.simulator.clock import Clock, VirtualClock, WallClock
from trainmaster.local.simulator.hostility.hostility import Hostility
from trainmaster.local.simulator.service.engine import Account
from trainmaster.local.simulator.service.profiles import Outcome, Profile
from trainmaster.local.simulator.simulator import SageMakerSimulator
from trainmaster.local.simulator.wire.errors import ApiError

__all__ = [
    "Account",
    "ApiError",
    "Clock",
    "Hostility",
    "Outcome",
    "Profile",
    "SageMakerSimulator",
    "VirtualClock",
    "WallClock",
]
