"""Which cards the NVIDIA Container Toolkit has described, so that its CDI devices can be used.

Blocking; called in threads.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import structlog
import yaml

_KIND = "nvidia.com/gpu"
_ENDINGS = (".json", ".yaml", ".yml")

log = structlog.get_logger(__name__)


class _Device(msgspec.Struct):
    # The toolkit writes cards by index too; YAML then makes a number of the name.
    name: str | int


class _Spec(msgspec.Struct):
    kind: str = ""
    devices: tuple[_Device, ...] = ()


def vendor_devices(folders: Iterable[str], uuids: Iterable[str], *, skip: str) -> dict[str, str]:
    """The CDI device of every card that has one, by UUID.

    `skip` is what the names of our own files begin with: there may be thousands of them.
    """
    described = {name for folder in folders for name in _names(Path(folder), skip)}
    return {uuid: f"{_KIND}={uuid}" for uuid in uuids if uuid in described}


def _names(folder: Path, skip: str) -> Iterator[str]:
    try:
        paths = sorted(folder.iterdir())
    except OSError:
        return  # No folder, no devices.
    for path in paths:
        if path.suffix in _ENDINGS and not path.name.startswith((skip, ".")):
            spec = _spec(path)
            if spec is not None and spec.kind == _KIND:
                yield from (str(device.name) for device in spec.devices)


def _spec(path: Path) -> _Spec | None:
    try:
        text = path.read_text("utf-8")
        data = (
            msgspec.json.decode(text)
            if path.suffix == ".json"
            else yaml.load(text, Loader=yaml.CSafeLoader)
        )
        return msgspec.convert(data, _Spec)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.MsgspecError) as error:
        log.warning("CDI file of another vendor cannot be read", file=str(path), error=str(error))
        return None
