"""How a value is reached inside of another: `.field`, `[key]`, their optional forms, `in`."""

from driver.selector.equality import same
from driver.selector.errors import CelError, no_such_overload
from driver.selector.values import ABSENT, Optional, TaggedKey, Uint, type_name

_MISSING = object()


def select(operand: object, field: str) -> object:
    """`operand.field`."""
    if isinstance(operand, dict):
        try:
            return operand[field]
        except KeyError:
            raise CelError(f"no such key: {field}") from None
    if isinstance(operand, Optional):
        return optional_select(operand, field)
    raise no_such_overload(f"field selection of {field}")


def has(operand: object, field: str) -> bool:
    """`has(operand.field)`; what has no fields at all has not this one."""
    if isinstance(operand, dict):
        # A domain that is not there reads as empty, and so is always there to be read.
        return field in operand or hasattr(operand, "__missing__")
    if isinstance(operand, Optional):
        return operand.present and has(operand.value, field)
    if isinstance(operand, list):
        raise CelError("unsupported index type 'string' in list")
    return False


def optional_select(operand: object, field: str) -> Optional:
    """`operand.?field`; absent, too, where there can be no fields."""
    if isinstance(operand, Optional):
        return optional_select(operand.value, field) if operand.present else ABSENT
    if has(operand, field) and isinstance(operand, dict):
        return Optional(operand[field])
    return ABSENT


def index(operand: object, key: object) -> object:
    """`operand[key]`."""
    if isinstance(operand, dict):
        value = find(operand, key)
        if value is _MISSING:
            raise CelError(f"no such key: {key}")
        return value
    if isinstance(operand, list):
        position = _position(key)
        if not 0 <= position < len(operand):
            raise CelError(f"index out of bounds: {position}")
        return operand[position]
    if isinstance(operand, Optional):
        return optional_index(operand, key)
    raise no_such_overload("_[_]")


def optional_index(operand: object, key: object) -> Optional:
    """`operand[?key]`."""
    if isinstance(operand, Optional):
        return optional_index(operand.value, key) if operand.present else ABSENT
    if isinstance(operand, dict):
        value = find(operand, key)
        return ABSENT if value is _MISSING else Optional(value)
    if isinstance(operand, list):
        position = _position(key)
        return Optional(operand[position]) if 0 <= position < len(operand) else ABSENT
    return ABSENT


def contains(container: object, value: object) -> bool:
    """`value in container`."""
    if isinstance(container, list):
        return any(same(value, element) for element in container)
    if isinstance(container, dict):
        return any(key in container for key in _keys(value))
    raise no_such_overload("@in")


def find(container: dict[object, object], value: object) -> object:
    """What a map holds under a key; numbers are looked up by value, whatever their type."""
    for key in _keys(value):
        if key in container:
            return container[key]
    if isinstance(value, str) and hasattr(container, "__missing__"):
        return container[value]
    return _MISSING


def _keys(value: object) -> tuple[object, ...]:
    kind = type(value)
    if kind is str:
        return (value,)
    if kind is bool:
        return (TaggedKey("bool", value),)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        return int(value), TaggedKey("uint", Uint(value)) if value >= 0 else int(value)
    return ()


def _position(key: object) -> int:
    if isinstance(key, float) and key.is_integer():
        return int(key)
    if isinstance(key, int) and not isinstance(key, bool):
        return int(key)
    raise CelError(f"unsupported index type '{type_name(key)}' in list")
