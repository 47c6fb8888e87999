"""Commands of queue admins: pause and resume the manager, and ask for a comparison with SageMaker."""

from __future__ import annotations

from dataclasses import dataclass

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.errors import IllegalTransition
from trainmaster.domain.restore import Restore
from trainmaster.ports.store import Pause
from trainmaster.service.change import ApiContext
from trainmaster.service.wake import wake


@dataclass(frozen=True, slots=True)
class ManagerStatus:
    """The state of the manager.

    Attributes:
        pause: None if it is not paused.
        restore: the newest comparison of the table with SageMaker; None if none was asked for.
    """

    pause: Pause | None
    restore: Restore | None


def manager_status(context: ApiContext) -> ManagerStatus:
    """Return whether the manager is paused, and the newest comparison."""
    return ManagerStatus(context.store.pause(), context.store.restore())


def pause(context: ApiContext, caller: Caller, reason: str) -> ManagerStatus:
    """Pause the manager: the running pass is fenced, no other begins, and events are ignored."""
    context.store.set_pause(Pause(reason, caller.principal, context.clock.now()))
    return manager_status(context)


def resume(context: ApiContext) -> ManagerStatus:
    """Resume the manager; its next pass polls what it has missed."""
    context.store.set_pause(None)
    wake(context.store, context.publisher)
    return manager_status(context)


def ask_restore(context: ApiContext, *, adopt: bool) -> ManagerStatus:
    """Have the manager compare the table with SageMaker, and adopt the differences if `adopt`.

    Raises `IllegalTransition` unless the manager is paused.
    """
    if context.store.pause() is None:
        raise IllegalTransition("The manager is not paused.", hint="Pause it first: PUT /pause, or trainmaster pause.")
    context.store.save_restore(Restore(asked_at=context.clock.now(), adopt=adopt))
    wake(context.store, context.publisher)
    return manager_status(context)
