import heapq
import itertools
import random
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver.kube.lease import LeaseSpec, Observation, Step, Timing, decide

TIMING = Timing()
OTHERS = LeaseSpec(holder_identity="other", lease_duration_seconds=10)
OURS = LeaseSpec(holder_identity="me", lease_duration_seconds=10)
FREE = LeaseSpec(holder_identity="", lease_duration_seconds=1)


@pytest.mark.parametrize(
    ("spec", "seen_for", "renewed_ago", "step"),
    [
        (None, 0.0, None, Step.ACQUIRE),
        (FREE, 0.0, None, Step.ACQUIRE),
        (OTHERS, 9.9, None, Step.WAIT),
        (OTHERS, 10.0, None, Step.ACQUIRE),
        # The record's own duration counts, whatever ours is; without one, ours does.
        (LeaseSpec(holder_identity="other", lease_duration_seconds=60), 59.0, None, Step.WAIT),
        (LeaseSpec(holder_identity="other", lease_duration_seconds=3), 3.0, None, Step.ACQUIRE),
        (LeaseSpec(holder_identity="other"), 9.0, None, Step.WAIT),
        # Our name on the record, but the answer to our write was lost.
        (OURS, 0.0, None, Step.ACQUIRE),
        (OURS, 0.0, 0.0, Step.RENEW),
        (OURS, 0.0, 6.9, Step.RENEW),
        (OURS, 0.0, 7.0, Step.STEP_DOWN),
        (OTHERS, 0.0, 1.0, Step.STEP_DOWN),
        (None, 0.0, 1.0, Step.STEP_DOWN),
        (FREE, 0.0, 1.0, Step.STEP_DOWN),
    ],
)
def test_the_next_step(
    spec: LeaseSpec | None, seen_for: float, renewed_ago: float | None, step: Step
) -> None:
    """One row for each case of the rule."""
    now = 500.0
    renewed_at = None if renewed_ago is None else now - renewed_ago
    observed = Observation(spec, now - seen_for)
    assert decide(observed, identity="me", renewed_at=renewed_at, now=now, timing=TIMING) is step


class Simulation:
    """Replicas that decide by the rule, in a world of slow, lost and frozen steps.

    Every chance is drawn from `delay`, in seconds: how long a request or an answer takes, how long
    a replica sleeps. A negative answer time means that the answer is lost.
    """

    def __init__(self, replicas: int, delay: Callable[[], float]) -> None:
        self.record: LeaseSpec | None = None
        self.version = 0
        self.now = 0.0
        self.leading: dict[str, float | None] = {f"r{n}": None for n in range(replicas)}
        self.observed = {name: (Observation(None, 0.0), 0) for name in self.leading}
        self._delay = delay
        self._count = itertools.count()
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        for name in self.leading:
            self._after(delay(), partial(self._look, name))

    def run(self, steps: int) -> None:
        """Play, and check after every step that at most one replica may act."""
        for _ in range(steps):
            self.now, _number, act = heapq.heappop(self._queue)
            act()
            acting = [
                name
                for name, renewed in self.leading.items()
                if renewed is not None and self.now < renewed + TIMING.renew_deadline
            ]
            assert len(acting) <= 1, f"{acting} act at {self.now}"

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now + abs(seconds), next(self._count), act))

    def _look(self, name: str) -> None:
        """Read the record, then decide on what was read when the answer comes."""
        record, version = self.record, self.version
        self._after(self._delay(), lambda: self._see(name, record, version))

    def _see(self, name: str, record: LeaseSpec | None, version: int) -> None:
        old, _ = self.observed[name]
        new = old if old.spec == record else Observation(record, self.now)
        self.observed[name] = (new, version)
        renewed_at, now = self.leading[name], self.now
        match decide(new, identity=name, renewed_at=renewed_at, now=now, timing=TIMING):
            case Step.WAIT:
                self._after(self._delay(), lambda: self._look(name))
            case Step.STEP_DOWN:
                self.leading[name] = None
                self._after(self._delay(), lambda: self._look(name))
            case Step.ACQUIRE | Step.RENEW:
                self._after(self._delay(), lambda: self._write(name, version, began=now))

    def _write(self, name: str, version: int, *, began: float) -> None:
        """The write arrives: it goes through if nobody was faster. The answer may be lost."""
        landed = version == self.version
        if landed:
            self.version += 1
            self.record = LeaseSpec(
                holder_identity=name, lease_duration_seconds=10, renew_time=str(self.version)
            )
        answer = self._delay()
        lost = answer < 0
        self._after(answer, lambda: self._answer(name, began=began, good=landed and not lost))

    def _answer(self, name: str, *, began: float, good: bool) -> None:
        if good:
            self.leading[name] = began
        self._after(self._delay(), lambda: self._look(name))


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32), replicas=st.integers(2, 3))
def test_two_never_act_at_once(seed: int, replicas: int) -> None:
    """However slow, lost or frozen the steps are."""
    chance = random.Random(seed)  # noqa: S311 # play

    def delay() -> float:
        length = chance.choice([0.01, 0.1, 0.5, 1.0, 2.0, 2.0, 6.0, 9.0, 11.0, 40.0])
        return length * chance.uniform(0.5, 1.0) * chance.choice([1, 1, 1, -1])

    Simulation(replicas, delay).run(200)
