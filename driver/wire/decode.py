"""How the bytes of the API server become our data.

Unknown fields are dropped here; who must understand an object completely asks
`driver.wire.unknown`.
"""

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from driver.model import quantity
from driver.model.errors import InvalidObjectError
from driver.model.quantity import Quantity

T = TypeVar("T")


def _read(kind: type, value: object) -> object:
    if kind is Quantity:
        # The API server writes quantities as strings, but accepts numbers in manifests.
        return quantity.parse(value if isinstance(value, str) else repr(value))
    raise NotImplementedError(f"no rule to read a {kind.__name__}")


@lru_cache(maxsize=256)
def _decoder(kind: Hashable) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind, dec_hook=_read)


def decode(kind: type[T], data: bytes | str | msgspec.Raw) -> T:
    """Read one JSON document as `kind`.

    Raises `InvalidObjectError` naming the kind and the place in the document that is wrong.
    """
    try:
        decoder: msgspec.json.Decoder[T] = _decoder(kind)
        return decoder.decode(bytes(data) if isinstance(data, msgspec.Raw) else data)
    except (msgspec.MsgspecError, InvalidObjectError, UnicodeDecodeError) as error:
        raise InvalidObjectError(f"{kind.__name__} cannot be read: {error}") from error


def convert(kind: type[T], data: Any) -> T:
    """Read what YAML or JSON already parsed as `kind`; raises as `decode` does."""
    try:
        return msgspec.convert(data, kind, dec_hook=_read)
    except (msgspec.MsgspecError, InvalidObjectError) as error:
        raise InvalidObjectError(f"{kind.__name__} cannot be read: {error}") from error
