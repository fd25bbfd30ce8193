"""How the bytes of the API server become our data.

Unknown fields are dropped here; who must understand an object completely asks
`driver.wire.unknown`.
"""

from typing import Any, TypeVar

import msgspec

from driver.model import quantity
from driver.model.errors import InvalidObjectError
from driver.model.quantity import Quantity
from driver.wire.absent import without_nulls
from driver.wire.depth import shallow

T = TypeVar("T")


def _read(kind: type, value: object) -> object:
    if kind is Quantity:
        # The API server writes quantities as strings, but accepts numbers in manifests.
        return quantity.parse(value if isinstance(value, str) else repr(value))
    raise NotImplementedError(f"no rule to read a {kind.__name__}")


_DECODERS: dict[type, msgspec.json.Decoder[Any]] = {}


def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    # lru_cache would lose the type.
    if kind not in _DECODERS:
        _DECODERS[kind] = msgspec.json.Decoder(kind, dec_hook=_read)
    return _DECODERS[kind]


def decode(kind: type[T], data: bytes | str | msgspec.Raw) -> T:
    """Read one JSON document as `kind`.

    What nests too deep for anything that we know is left out (`driver.wire.depth`), and null is
    as good as nothing (`driver.wire.absent`). Raises `InvalidObjectError` naming the kind and the
    place in the document that is wrong.
    """
    document = data.encode() if isinstance(data, str) else bytes(data)
    try:
        return _read_document(_decoder(kind), document)
    except (msgspec.MsgspecError, InvalidObjectError, UnicodeDecodeError) as error:
        raise InvalidObjectError(f"{kind.__name__} cannot be read: {error}") from error


def _read_document(decoder: msgspec.json.Decoder[T], document: bytes) -> T:
    """What is rare costs a second look, and only then."""
    try:
        return decoder.decode(document)
    except (RecursionError, msgspec.ValidationError):
        document = shallow(document)
    try:
        return decoder.decode(document)
    except msgspec.ValidationError:
        return decoder.decode(without_nulls(document))


def convert(kind: type[T], data: Any) -> T:
    """Read what YAML or JSON already parsed as `kind`; raises as `decode` does."""
    return decode(kind, msgspec.json.encode(data))
