"""What a selector says of devices, worked out once for all that are the same in what it reads.

Clusters have thousands of equal cards, which differ in UUIDs and bus addresses only; usual
selectors read neither.
"""

from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import TypeVar

from driver.model.errors import TooDearError
from driver.model.resourceslice import Device
from driver.selector.device import SelectorDevice, is_regular
from driver.selector.errors import CompileError, EvaluationError, SelectorError
from driver.selector.parser import parse
from driver.selector.paths import Path
from driver.selector.program import Program, compile_selector
from driver.selector.reads import reads

T = TypeVar("T")
# The answer, which may be that there is none, and what it has cost in CEL's units.
Judgement = tuple[bool | SelectorError | TooDearError, int]

# What one selector may cost on one device; see `Program.judge` for what that means.
_MAY_COST = 50_000
# Selectors may read what is different for every device, and claims may each bring selectors of
# their own: answers that are not needed again must go. So many are kept of a selector, and so many
# of a device where it is not compared.
_MOST_ANSWERS = 4096
_MOST_OWN_ANSWERS = 64


class Subject:
    """One published device, made ready for selectors no further than they need it."""

    __slots__ = ("_regular", "_view", "answers", "device", "driver")

    def __init__(self, driver: str, device: Device) -> None:
        self.driver = driver
        self.device = device
        # Those of selectors that read everything, by their text; None as long as there are none.
        self.answers: dict[Hashable, Judgement] | None = None
        self._view: SelectorDevice | None = None
        self._regular: bool | None = None

    @property
    def view(self) -> SelectorDevice:
        """The device as a value of CEL, made once."""
        if self._view is None:
            self._view = SelectorDevice.of(self.driver, self.device)
        return self._view

    @property
    def regular(self) -> bool:
        """Whether it can be told from other devices only by what an expression reads of it."""
        if self._regular is None:
            self._regular = is_regular(self.driver, self.device)
        return self._regular


class Judge:
    """One selector. `evaluations` counts how often it was evaluated."""

    def __init__(self, expression: str) -> None:
        self.evaluations = 0
        self._expression = expression
        self._answers: dict[Hashable, Judgement] = {}
        self._program: Program | CompileError
        self._lens: _Lens | None = None
        try:
            self._program = compile_selector(expression)
        except CompileError as error:
            self._program = error
        else:
            read = reads(parse(expression))
            self._lens = _Lens(read) if read is not None else None

    def judge(self, subject: Subject) -> Judgement:
        """What the selector says of the device, or how it fails. An error is an answer here."""
        if isinstance(self._program, CompileError):
            return self._program, 0
        kept, key, most = self._kept(subject)
        known = kept.get(key)
        if known is None:
            if len(kept) >= most:
                kept.clear()
            known = kept[key] = self._evaluated(self._program, subject)
        return known

    def _kept(self, subject: Subject) -> tuple[dict[Hashable, Judgement], Hashable, int]:
        """Where its answer on the device is to be found, under which key, among how many."""
        seen = self._lens.seen(subject) if self._lens is not None else None
        if seen is not None:
            return self._answers, seen, _MOST_ANSWERS
        if subject.answers is None:
            subject.answers = {}
        return subject.answers, self._expression, _MOST_OWN_ANSWERS

    def _evaluated(self, program: Program, subject: Subject) -> Judgement:
        self.evaluations += 1
        try:
            answer, cost = program.judge(subject.view, _MAY_COST)
        except TooDearError as error:
            return TooDearError(str(error)), _MAY_COST
        if isinstance(answer, EvaluationError):
            # Anew: the one that was raised holds on to the device through its traceback.
            answer = EvaluationError(str(answer))
        return answer, cost


class _Lens:
    """What a selector reads of a device, as one value to compare."""

    def __init__(self, paths: frozenset[Path]) -> None:
        named = sorted(path for path in paths if len(path) > 1)
        self._attributes = tuple(path[1:] for path in named if path[0] == "attributes")
        self._capacity = tuple(path[1:] for path in named if path[0] == "capacity")

    def seen(self, subject: Subject) -> Hashable | None:
        """Equal for devices that the selector cannot tell apart; None: this one is not compared."""
        if not subject.regular:
            return None
        driver, device = subject.driver, subject.device
        found: list[object] = [driver, bool(device.allow_multiple_allocations)]
        try:
            for domain, name in self._attributes:
                found.append(_published(device.attributes, driver, domain, name))
            for domain, name in self._capacity:
                one = _published(device.capacity, driver, domain, name)
                found.append(None if one is None else (one.value.nano, one.value.format))
        except _TwiceError:
            return None
        return tuple(found)


class _TwiceError(Exception):
    """A name is published twice, with its domain and without: their order says which counts."""


def _published(values: Mapping[str, T], driver: str, domain: str, name: str) -> T | None:
    value = values.get(f"{domain}/{name}")
    if domain != driver or "/" in name:
        return value
    bare = values.get(name)
    if value is not None and bare is not None:
        raise _TwiceError
    return bare if value is None else value


@lru_cache(maxsize=1024)
def judge_of(expression: str) -> Judge:
    """The judge of this selector; the same one for the same text."""
    return Judge(expression)
