"""Submit a training job through the queue with SageMaker SDK v2 for each line `NAME PRIORITY STEPS` of standard input.

The session is the only difference from a script without the queue.
"""

import sys
from pathlib import Path

from sagemaker.estimator import Estimator

from trainmaster import QueueSession

TRAINING_SCRIPT = Path(__file__).with_name("count_steps.py")


def main() -> None:
    """Print `ready`, submit a job for each line, and print its name once the queue has accepted it."""
    session = QueueSession()
    print("ready", flush=True)
    for line in sys.stdin:
        name, priority, steps = line.split()
        estimator = Estimator(
            image_uri="000000000000.dkr.ecr.us-east-1.amazonaws.com/count-steps:1",
            role="arn:aws:iam::000000000000:role/trainer",
            instance_type="ml.p5.48xlarge",
            instance_count=1,
            container_entry_point=[sys.executable, str(TRAINING_SCRIPT)],
            hyperparameters={"steps": int(steps)},
            output_path="s3://training/output",
            checkpoint_s3_uri=f"s3://training/checkpoints/{name}",
            tags=[{"Key": "priority", "Value": priority}],
            sagemaker_session=session,
        )
        estimator.fit(wait=False, job_name=name)
        print(f"submitted {name}", flush=True)


if __name__ == "__main__":
    main()
