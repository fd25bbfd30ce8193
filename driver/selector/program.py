"""What an expression is once compiled: asked of a device, it gives a value; a selector, yes or no.

Source of the rules: `k8s.io/dynamic-resource-allocation/cel` as the scheduler uses it, with the
environment for stored expressions and the run time cost limit; no limit on the length.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from driver.model.errors import TooDearError
from driver.selector.checker import check
from driver.selector.closures import compile_node
from driver.selector.device import SelectorDevice
from driver.selector.errors import AbortError, CelError, CompileError, EvaluationError
from driver.selector.frame import Frame, Run
from driver.selector.parser import MAX_DEPTH, parse
from driver.selector.types import BOOL, DYN
from driver.selector.values import type_name
from driver.selector.worst import SMALL, is_cheap


class Expression:
    """One compiled expression. It keeps nothing between evaluations.

    Building one raises `CompileError`; see `compile_expression`.
    """

    def __init__(self, expression: str) -> None:
        self.expression = expression
        node = parse(expression)
        checked = check(node)
        self.result = checked.result
        counted = compile_node(node, checked, counting=True)
        self._counted = counted.run
        self._variables = counted.variables
        self._quick: Run | None = None
        if is_cheap(node, checked):
            self._quick = compile_node(node, checked, counting=False).run

    def value(self, device: SelectorDevice) -> object:
        """What it gives for the device, as `values` describes. Raises `EvaluationError`."""
        return self._value(Frame(device, self._variables))

    def _value(self, frame: Frame) -> object:
        device = frame.device
        if device.broken is not None:
            raise EvaluationError(device.broken)
        run = self._quick
        if run is None or device.largest > SMALL:
            run = self._counted
        try:
            return run(frame)
        except (CelError, AbortError) as error:
            raise EvaluationError(str(error)) from error
        except RecursionError:
            raise EvaluationError("expression nests too deep to be evaluated") from None

    def cost(self, device: SelectorDevice) -> int:
        """What one evaluation costs. Raises `EvaluationError` beyond the limit."""
        frame = Frame(device, self._variables)
        try:
            self._counted(frame)
        except CelError:
            pass
        except (AbortError, RecursionError) as error:
            raise EvaluationError(str(error)) from error
        return frame.cost


class Program(Expression):
    """One compiled selector: an expression that gives a bool, or whose type is not known."""

    def __init__(self, expression: str) -> None:
        super().__init__(expression)
        if self.result not in (BOOL, DYN):
            raise CompileError(f"must evaluate to bool or the unknown type, not {self.result}")

    def matches(self, device: SelectorDevice) -> bool:
        """Whether the device is selected. Raises `EvaluationError` with CEL's reason."""
        return _decided(self.value(device))

    def judge(self, device: SelectorDevice, limit: int) -> tuple[bool | EvaluationError, int]:
        """The same as a value, and what finding out has cost, in CEL's units.

        One unit takes about a microsecond here, a hundred times what it takes in Go: an expression
        that Kubernetes lets pass may take a second. Raises `TooDearError` beyond `limit`, which is
        to be below Kubernetes' own.
        """
        frame = Frame(device, self._variables, limit)
        try:
            answer: bool | EvaluationError = _decided(self._value(frame))
        except EvaluationError as error:
            if frame.cost > limit:
                raise TooDearError(
                    f"selector {self.expression[:80]!r} takes too long to be evaluated here"
                ) from None
            answer = error
        # What needs no counting takes as long as its text is.
        return answer, frame.cost + len(self.expression) // _CHARACTERS_A_UNIT


def _decided(result: object) -> bool:
    if result is True or result is False:
        return result is True
    raise EvaluationError(f"CEL result of type {type_name(result)} could not be converted to bool")


_CHARACTERS_A_UNIT = 16

T = TypeVar("T", bound=Expression)


def _built(kind: Callable[[str], T], expression: str) -> T | CompileError:
    try:
        return kind(expression)
    except CompileError as error:
        return error
    except RecursionError:
        return CompileError(f"compilation failed: expression recursion limit exceeded: {MAX_DEPTH}")


@lru_cache(maxsize=1024)
def _program(expression: str) -> Program | CompileError:
    return _built(Program, expression)


@lru_cache(maxsize=1024)
def _expression(expression: str) -> Expression | CompileError:
    return _built(Expression, expression)


def compile_selector(expression: str) -> Program:
    """The program of a selector; the same one for the same text. Raises `CompileError`."""
    return _or_raise(_program(expression))


def compile_expression(expression: str) -> Expression:
    """An expression of any type; the same one for the same text. Raises `CompileError`."""
    return _or_raise(_expression(expression))


def _or_raise(found: T | CompileError) -> T:
    if isinstance(found, CompileError):
        # Raised anew each time: the kept one would collect every caller's traceback.
        raise CompileError(str(found))
    return found
