"""How our data becomes JSON that the API server takes."""

from typing import Any

import msgspec

from driver.model.quantity import Quantity


def _write(value: object) -> object:
    if isinstance(value, Quantity):
        return str(value)
    raise NotImplementedError(f"no rule to write a {type(value).__name__}")


_ENCODER = msgspec.json.Encoder(enc_hook=_write)


def encode(value: object) -> bytes:
    """One compact JSON document; fields with their default value are left out."""
    return _ENCODER.encode(value)


def builtins(value: object) -> Any:
    """The same as `encode`, as dictionaries, lists, strings, numbers; raw JSON is parsed."""
    return msgspec.json.decode(encode(value))
