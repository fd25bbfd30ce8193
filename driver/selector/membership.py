"""`x in [constants]` and `"name" in device.attributes["domain"]`, the two usual forms of `in`."""

from driver.selector.compiler import Compiler
from driver.selector.errors import AbortError
from driver.selector.frame import Code, Frame, constant
from driver.selector.paths import path_run
from driver.selector.syntax import Call, ListNode, Literal
from driver.selector.values import TaggedKey, Uint

_PRIMITIVE = (bool, int, float, str, Uint)
_DOMAIN_PATH = 2


def compile_in(compiler: Compiler, node: Call) -> Code | None:
    """The code of a usual form, or None for any other."""
    left, right = node.args
    path = compiler.path(right)
    if path is not None and len(path) == _DOMAIN_PATH and isinstance(left, Literal):
        if not isinstance(left.value, str):
            return None
        name, domain = left.value, path_run(path)
        return Code(compiler.charged(lambda f: name in domain(f), 2 + _DOMAIN_PATH))  # type: ignore[operator]
    if not isinstance(right, ListNode):
        return None
    members = compiler.compile(right)
    if not members.constant or not isinstance(members.value, list):
        return None
    return _constant_members(compiler, node, members.value)


def _constant_members(compiler: Compiler, node: Call, members: list[object]) -> Code | None:
    if not members:
        # cel-go decides this at compile time, and never looks at the left side.
        return constant(value=False)
    if not all(type(member) in _PRIMITIVE for member in members):
        return None
    value = compiler.compile(node.args[0]).run
    known = frozenset(_tagged(member) for member in members)

    def run(frame: Frame) -> object:
        found = value(frame)
        if type(found) is bytes or getattr(found, "unhashable", False):
            # Go panics on such a key, and the panic ends the evaluation as an error.
            raise AbortError("internal error: runtime error: hash of unhashable type")
        return type(found) in _PRIMITIVE and _tagged(found) in known

    return Code(run)


def _tagged(value: object) -> object:
    """Numbers by value, whatever their type; bools apart from them."""
    return TaggedKey("bool", value) if isinstance(value, bool) else value
