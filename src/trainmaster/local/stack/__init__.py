"""The local stack: the template deployed in ministack, with the simulator as SageMaker.

It uses only the loopback interface, and leaves no process behind.
"""

from trainmaster.local.stack.address import StackAddress
from trainmaster.local.stack.checkout import Checkout, SetupMissing
from trainmaster.local.stack.local_stack import LocalStack
from trainmaster.local.stack.processes import StartFailed

__all__ = ["Checkout", "LocalStack", "SetupMissing", "StackAddress", "StartFailed"]
