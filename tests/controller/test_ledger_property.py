"""No device is used twice, whatever the order of events, answers and writes."""

import os
from collections.abc import Callable

import pytest

from driver.controller.ledger import Ledger
from tests.controller import adversary
from tests.controller.adversary import DoubleUseError, World, play

# 10^6 on demand: QUADRANT_LEDGER_RUNS=1000000
RUNS = int(os.environ.get("QUADRANT_LEDGER_RUNS", "100000"))
PARTS = 20


@pytest.mark.parametrize("part", range(PARTS))
def test_no_double_use(part: int) -> None:
    """The world's etcd finds no double use; the commits say that the runs did something."""
    commits = sum(play(seed).commits for seed in range(part, RUNS, PARTS))
    assert commits > RUNS // PARTS


def _let_every_write_pass(self: Ledger, uid: str, version: int, now: float) -> bool:
    return True


def _drop_without_a_look(self: World) -> None:
    for answer in self.ledger.overdue(self.now + 30.0):
        self.ledger.gone(answer.uid, self.now)


def _forget_at_any_version(self: Ledger, uid: str, version: int, now: float) -> None:
    self.gone(uid, now)  # type: ignore[arg-type]


def _hold_nothing(self: Ledger, answer: object) -> None:
    del answer


@pytest.mark.parametrize(
    ("owner", "name", "broken"),
    [
        (Ledger, "answer", _hold_nothing),
        (Ledger, "base", _let_every_write_pass),
        (Ledger, "forget", _forget_at_any_version),
        (World, "expire", _drop_without_a_look),
    ],
)
def test_a_ledger_without_one_of_its_rules_is_found_out(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, broken: Callable[..., object]
) -> None:
    """So the test above can fail."""
    monkeypatch.setattr(owner, name, broken)
    with pytest.raises((DoubleUseError, KeyError)):
        for seed in range(20_000):
            play(seed)


def test_a_new_leader_that_does_not_wait_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 5 is needed too."""
    monkeypatch.setattr(adversary, "TAKEOVER_WAIT_S", 0.0)
    with pytest.raises(DoubleUseError):
        for seed in range(20_000):
            play(seed)
