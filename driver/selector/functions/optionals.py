"""Optional values: made, asked and opened. `or` and `orValue` are compiled in `calls`."""

from driver.selector import cost
from driver.selector.errors import CelError, no_such_overload
from driver.selector.functions.library import Overload, function, method
from driver.selector.types import BOOL, INT, A, B, list_of, map_of, optional_of
from driver.selector.values import ABSENT, Duration, Optional, Timestamp


def _of_non_zero(value: object) -> Optional:
    return ABSENT if _is_zero(value) else Optional(value)


def _is_zero(value: object) -> bool:
    if value is None or isinstance(value, (Duration, Timestamp)):
        return value is None or value == Duration(0)
    if isinstance(value, (bool, int, float, str, bytes, list, dict)):
        return not value
    return False


def _value(optional: Optional) -> object:
    if not optional.present:
        raise CelError("optional.none() dereference")
    return optional.value


def _unwrapped(optionals: list[object]) -> list[object]:
    found: list[object] = []
    for optional in optionals:
        if not isinstance(optional, Optional):
            raise no_such_overload("optional.unwrap")
        if optional.present:
            found.append(optional.value)
    return found


def _decided_elsewhere(*_: object) -> object:
    raise no_such_overload()


_OPTIONAL = optional_of(A)
_LISTS = (list_of(A), INT)
_MAPS = (map_of(A, B), A)
_OPTIONAL_LISTS = (optional_of(list_of(A)), INT)
_OPTIONAL_MAPS = (optional_of(map_of(A, B)), A)

OVERLOADS: tuple[Overload, ...] = (
    function("optional.of", (A,), _OPTIONAL, Optional),
    function("optional.none", (), _OPTIONAL, lambda: ABSENT),
    function("optional.ofNonZeroValue", (A,), _OPTIONAL, _of_non_zero),
    function("optional.unwrap", (list_of(_OPTIONAL),), list_of(A), _unwrapped, cost=cost.new_list),
    method("unwrapOpt", (list_of(_OPTIONAL),), list_of(A), _unwrapped, cost=cost.new_list),
    method("hasValue", (_OPTIONAL,), BOOL, lambda optional: optional.present),
    method("value", (_OPTIONAL,), A, _value),
    method("or", (_OPTIONAL, _OPTIONAL), _OPTIONAL, _decided_elsewhere),
    method("orValue", (_OPTIONAL, A), A, _decided_elsewhere),
    function("_[?_]", _LISTS, _OPTIONAL, _decided_elsewhere),
    function("_[?_]", _MAPS, optional_of(B), _decided_elsewhere),
    function("_[?_]", _OPTIONAL_LISTS, _OPTIONAL, _decided_elsewhere),
    function("_[?_]", _OPTIONAL_MAPS, optional_of(B), _decided_elsewhere),
    function("_[_]", _OPTIONAL_LISTS, _OPTIONAL, _decided_elsewhere),
    function("_[_]", _OPTIONAL_MAPS, optional_of(B), _decided_elsewhere),
)
