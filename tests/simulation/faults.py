"""Faults in a manager's calls: kills, other managers that overtake it, and failures of its store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from simulation.acts import Act, CallFault, Kill, Overtake, StoreFault
from trainmaster.domain.errors import Throttled, Unavailable


class Killed(BaseException):
    """The manager's process is gone; nothing in it can catch this."""


Sent = Callable[[str, Mapping[str, Any]], None]
"""Called with each call to SageMaker before it is made: verb and members."""


@dataclass
class Calls:
    """The calls of one manager after another, and the faults that wait for them.

    Attributes:
        overtake: has another manager run.
        hang: lets time pass, in which others go on.
        sent: gets each call of SageMaker before it is made.
        answered: called when it has an answer, or none will come.
        trouble: called whenever something goes wrong.
        done: the faults that took place, by kind.
        planned: acts that wait for a manager that makes so many calls, or for a call of their verb.
    """

    overtake: Callable[[], None]
    hang: Callable[[float], None]
    sent: Sent
    answered: Callable[[], None]
    trouble: Callable[[], None]
    done: Counter[str] = field(default_factory=Counter)
    planned: list[Act] = field(default_factory=list)
    armed: bool = False
    _number: int = 0
    _stored: int = 0

    def begin(self) -> None:
        """Begin an invocation."""
        self.armed, self._number, self._stored = True, 0, 0

    def end(self) -> None:
        """End it; what did not come upon it waits for one that gets as far."""
        self.armed = False

    def store(self, act: Callable[[], Any]) -> Any:
        """Carry out a call of the store, unless it fails."""
        if not self.armed:
            return act()
        self._stored += 1
        fault = self._take(StoreFault, self._stored) if self.planned else None
        if fault is not None and fault.how != "lost":
            raise Throttled("throttled") if fault.how == "throttled" else Unavailable("not there")
        result = act()
        if fault is not None:
            raise Unavailable("the answer is lost")
        self._count()
        return result

    def sagemaker(self, verb: str, act: Callable[..., Any], members: Mapping[str, Any]) -> Any:
        """Carry out a call of SageMaker, unless it fails."""
        fault = self._take_verb(verb) if self.planned else None
        self.sent(verb, members)
        if fault is not None and not fault.lost:
            raise _client_error(fault.code, verb)
        try:
            result = act(**members)
        except (ClientError, BotoCoreError) as error:
            if _is_trouble(error):
                self.trouble()
            raise
        finally:
            self.answered()
        if fault is not None:
            raise _client_error("InternalFailure", verb)
        if self.armed:
            self._count()
        return result

    def _count(self) -> None:
        """Count a call that was carried out, and let come what waits for its number."""
        self._number += 1
        if not self.planned:
            return
        if (overtaking := self._take(Overtake, self._number)) is not None:
            self.armed = False
            self.hang(overtaking.hang)
            self.overtake()
            self.armed = True
        if (kill := self._take(Kill, self._number)) is not None:
            self.hang(kill.hang)
            raise Killed

    def _take(self, kind: type[Any], number: int) -> Any:
        found = next((act for act in self.planned if isinstance(act, kind) and act.call == number), None)
        return None if found is None else self._taken(found)

    def _take_verb(self, verb: str) -> CallFault | None:
        found = next((act for act in self.planned if isinstance(act, CallFault) and act.verb == verb), None)
        return None if found is None else self._taken(found)

    def _taken(self, found: Any) -> Any:
        self.planned.remove(found)
        kind = type(found).__name__
        self.done[f"{kind} {getattr(found, 'how', '') or getattr(found, 'verb', '')}".strip()] += 1
        self.trouble()
        return found


class FaultyStore:
    """A store each of whose verbs may fail."""

    def __init__(self, inner: Any, calls: Calls) -> None:
        self._inner, self._calls = inner, calls

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._inner, name)
        return lambda *given, **named: self._calls.store(lambda: verb(*given, **named))


class FaultySageMaker:
    """A SageMaker client each of whose verbs may fail."""

    def __init__(self, inner: Any, calls: Calls) -> None:
        self._inner, self._calls = inner, calls
        self.meta = getattr(inner, "meta", None)

    def __getattr__(self, name: str) -> Any:
        act = getattr(self._inner, name)
        verb = "".join(part.capitalize() for part in name.split("_"))
        called = lambda **members: self._calls.sagemaker(verb, act, members)  # noqa: E731 -- one line of glue
        self.__dict__[name] = called
        return called


def _is_trouble(error: ClientError | BotoCoreError) -> bool:
    """Return whether a call failed for no reason of its own."""
    if isinstance(error, BotoCoreError):
        return True
    return "Throttl" in error.response["Error"]["Code"] or error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500


def _client_error(code: str, verb: str) -> ClientError:
    status = 400 if "Throttl" in code else 500
    return ClientError(
        {"Error": {"Code": code, "Message": "injected"}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        verb,
    )
