"""Which cards a pod's HAMi annotations allow, as CEL over the attributes of a device.

It knows the annotations and CEL's way of quoting; it does not know containers or claims.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from driver.controller.translate import ImpossibleRequestError
from driver.model import names
from driver.model.resourceclaim import CelSelector, DeviceSelector

# The one mode in which HAMi shares cards the way that we do.
_SHARED_MODE = "hami-core"
# The API's limit (`CELSelectorExpressionMaxLength`).
_MAX_EXPRESSION = 10 * 1024
# What Go's strconv.ParseBool takes, as HAMi reads the annotation with it.
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the annotations of one pod say about cards; empty where they say nothing.

    Types are in lower case: they match any part of a product's name, in either case.
    """

    types: tuple[str, ...] = ()
    not_types: tuple[str, ...] = ()
    uuids: tuple[str, ...] = ()
    not_uuids: tuple[str, ...] = ()
    one_numa_node: bool = False

    @property
    def narrows(self) -> bool:
        """Whether anything is asked for that a plain extended resource cannot say."""
        return self != Wanted()

    def allows(self, product_name: str) -> bool:
        """Whether a card of this name may be used, its UUID aside."""
        name = _lower(product_name)
        wanted = not self.types or any(kind in name for kind in self.types)
        return wanted and not any(kind in name for kind in self.not_types)


def read(annotations: Mapping[str, str]) -> Wanted:
    """What a pod's annotations ask for.

    Raises `ImpossibleRequestError` for a mode of sharing that this driver does not have.
    """
    mode = annotations.get(names.HAMI_MODE, "").strip()
    if mode and _SHARED_MODE not in mode:
        raise ImpossibleRequestError(
            f"annotation {names.HAMI_MODE} asks for {mode!r}, but this driver shares cards only as "
            f"{_SHARED_MODE!r} does; take the annotation away or set it to that"
        )
    return Wanted(
        types=_in_order(map(_lower, _items(annotations, names.HAMI_USE_TYPE))),
        not_types=_in_order(map(_lower, _items(annotations, names.HAMI_NO_TYPE))),
        uuids=_in_order(_items(annotations, names.HAMI_USE_UUID)),
        not_uuids=_in_order(_items(annotations, names.HAMI_NO_UUID)),
        one_numa_node=annotations.get(names.HAMI_NUMA_BIND, "").strip() in _TRUE,
    )


def selectors(wanted: Wanted, driver: str) -> tuple[DeviceSelector, ...]:
    """The selectors of a request for such cards.

    A card that lacks the attribute fits no list of wanted ones, and no list of unwanted ones.

    Raises `ImpossibleRequestError` when a list is longer than the API takes.
    """
    product, uuid = _attribute(driver, names.PRODUCT_NAME), _attribute(driver, names.UUID)
    contains = f"t, {product}.lowerAscii().contains(t)"
    types, not_types, uuids, not_uuids = (
        "[" + ", ".join(map(quoted, items)) + "]"
        for items in (wanted.types, wanted.not_types, wanted.uuids, wanted.not_uuids)
    )
    return tuple(
        _selector(expression, annotation)
        for asked, annotation, expression in (
            (wanted.types, names.HAMI_USE_TYPE, f"has({product}) && {types}.exists({contains})"),
            (
                wanted.not_types,
                names.HAMI_NO_TYPE,
                f"!has({product}) || !{not_types}.exists({contains})",
            ),
            (wanted.uuids, names.HAMI_USE_UUID, f"has({uuid}) && {uuid} in {uuids}"),
            (wanted.not_uuids, names.HAMI_NO_UUID, f"!has({uuid}) || !({uuid} in {not_uuids})"),
        )
        if asked
    )


def memory_is(size: int, driver: str) -> DeviceSelector:
    """The selector of cards with exactly this much memory, in bytes."""
    memory = f"device.capacity[{quoted(driver)}].{names.MEMORY}"
    expression = f'has({memory}) && {memory}.compareTo(quantity("{size}")) == 0'
    return DeviceSelector(cel=CelSelector(expression=expression))


def quoted(text: str) -> str:
    """A CEL string literal.

    JSON's escapes are a subset of CEL's, and anything beyond ASCII stands as it is: an escaped
    surrogate pair, which JSON also has, would be an error in CEL.
    """
    return msgspec.json.encode(text).decode()


def _attribute(driver: str, name: str) -> str:
    return f"device.attributes[{quoted(driver)}].{name}"


def _selector(expression: str, annotation: str) -> DeviceSelector:
    if len(expression.encode()) > _MAX_EXPRESSION:
        raise ImpossibleRequestError(
            f"annotation {annotation} is too long: as a selector it takes "
            f"{len(expression.encode())} bytes, and Kubernetes allows {_MAX_EXPRESSION}"
        )
    return DeviceSelector(cel=CelSelector(expression=expression))


def _items(annotations: Mapping[str, str], name: str) -> Iterator[str]:
    """The items of a comma separated list; blanks are left out."""
    parts = (part.strip() for part in annotations.get(name, "").split(","))
    return (part for part in parts if part)


def _in_order(items: Iterable[str]) -> tuple[str, ...]:
    """Each item once, sorted: the order means nothing, and so pods share a template."""
    return tuple(sorted(set(items)))


def _lower(text: str) -> str:
    """Lower case of ASCII letters only, as CEL's `lowerAscii` has it."""
    return "".join(char.lower() if char.isascii() else char for char in text)
