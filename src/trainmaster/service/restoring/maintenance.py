"""Commands of queue admins: pause and resume the manager, and ask for a comparison with SageMaker."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trainmaster.domain.access.caller import Caller
from trainmaster.domain.access.rules import Action
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


def manager_status(context: ApiContext, caller: Caller) -> ManagerStatus:
    """Return whether the manager is paused, and the newest comparison. Raises `AccessDenied`."""
    context.require(caller, Action.READ)
    return _status(context)


def pause(context: ApiContext, caller: Caller, reason: str) -> ManagerStatus:
    """Pause the manager: the running pass is fenced, no other begins, and events are ignored.

    Raises `AccessDenied`.
    """
    context.require(caller, Action.ADMINISTER)
    before, after = context.store.pause(), Pause(reason, caller.principal, context.clock.now())
    context.store.set_pause(after, audit=[context.recorder(caller).of_pause(before, after)])
    return _status(context)


def resume(context: ApiContext, caller: Caller) -> ManagerStatus:
    """Resume the manager; its next pass polls what it has missed. Raises `AccessDenied`."""
    context.require(caller, Action.ADMINISTER)
    before = context.store.pause()
    if before is not None:
        context.store.set_pause(None, audit=[context.recorder(caller).of_pause(before, None)])
    _forget_bound(context)
    wake(context.store, context.publisher)
    return _status(context)


def ask_restore(context: ApiContext, caller: Caller, *, adopt: bool) -> ManagerStatus:
    """Have the manager compare the table with SageMaker, and adopt the differences if `adopt`.

    Raises `AccessDenied`; `IllegalTransition` unless the manager is paused.
    """
    context.require(caller, Action.ADMINISTER)
    if context.store.pause() is None:
        raise IllegalTransition("The manager is not paused.", hint="Pause it first: PUT /pause.")
    earlier = context.store.restore()
    since = None if earlier is None else earlier.since
    asked = Restore(asked_at=context.clock.now(), asked_by=caller, adopt=adopt, since=since)
    context.store.save_restore(asked, audit=[context.recorder(caller).restore(adopt=adopt)])
    wake(context.store, context.publisher)
    return _status(context)


def _status(context: ApiContext) -> ManagerStatus:
    return ManagerStatus(context.store.pause(), context.store.restore())


def _forget_bound(context: ApiContext) -> None:
    """Let the next restore find by itself since when it compares; see `Restore.since`."""
    done = context.store.restore()
    if done is not None and done.since is not None:
        context.store.save_restore(replace(done, since=None))
