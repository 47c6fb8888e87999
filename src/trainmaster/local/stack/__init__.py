"""The whole service on one machine: the real template in ministack, and the simulator for SageMaker.

Development only. It must never reach beyond the loopback interface, and leaves no process behind, however it ends.
"""

from trainmaster.local.stack.address import StackAddress
from trainmaster.local.stack.checkout import Checkout, SetupMissing
from trainmaster.local.stack.local_stack import LocalStack
from trainmaster.local.stack.processes import StartFailed

__all__ = ["Checkout", "LocalStack", "SetupMissing", "StackAddress", "StartFailed"]
