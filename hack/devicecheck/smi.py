"""What `nvidia-smi -q -x` says of a machine. Knows the tool's words and nothing of ours."""

import subprocess
from xml.etree import ElementTree as ET

import msgspec

_COMMAND = ("nvidia-smi", "-q", "-x")
_TIMEOUT_S = 60
# What the tool writes where a card does not tell.
_NOTHING = frozenset({"", "N/A", "[N/A]", "Not Supported", "Unknown Error", "GPU is lost"})


class SmiError(Exception):
    """The tool cannot be asked, or says what cannot be read."""


class SmiCard(msgspec.Struct, frozen=True, kw_only=True):
    """One card, with the facts that the tool tells of it."""

    uuid: str
    facts: dict[str, str]
    # Facts that this version of the tool has a place for, told or not.
    known: frozenset[str]


class SmiMachine(msgspec.Struct, frozen=True, kw_only=True):
    """All that is compared."""

    driver_version: str
    cuda_version: str
    attached: int
    cards: tuple[SmiCard, ...]


def ask() -> SmiMachine:
    """What the tool says of this machine; raises `SmiError`."""
    command = " ".join(_COMMAND)
    try:
        run = subprocess.run(
            _COMMAND, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SmiError(f"{command} cannot be run: {error}") from error
    if run.returncode != 0:
        raise SmiError(f"{command} failed with {run.returncode}: {run.stdout.strip()}")
    return parse(run.stdout)


def parse(text: str) -> SmiMachine:
    """What the tool has written; raises `SmiError`."""
    try:
        log = ET.fromstring(text)  # noqa: S314  (it is from a tool of this machine)
    except ET.ParseError as error:
        raise SmiError(f"{' '.join(_COMMAND)} wrote no XML: {error}") from error
    return SmiMachine(
        driver_version=log.findtext("driver_version", ""),
        cuda_version=log.findtext("cuda_version", ""),
        attached=int(log.findtext("attached_gpus", "0")),
        cards=tuple(_card(gpu) for gpu in log.findall("gpu")),
    )


def _card(gpu: ET.Element) -> SmiCard:
    found = {
        "productName": gpu.find("product_name"),
        "brand": gpu.find("product_brand"),
        "architecture": gpu.find("product_architecture"),
        "addressingMode": gpu.find("addressing_mode"),
        "memory": gpu.find("fb_memory_usage/total"),
        "pciBusID": gpu.find("pci/pci_bus_id"),
        "gpuModuleID": _first(gpu, "gpu_module_id", "module_id"),
        "migMode": gpu.find("mig_mode/current_mig"),
        "migModePending": gpu.find("mig_mode/pending_mig"),
        "cluster": gpu.find("fabric/clusterUuid"),
        "clique": gpu.find("fabric/cliqueId"),
        "fabric": gpu.find("fabric/state"),
        "fabricStatus": gpu.find("fabric/status"),
    }
    texts = {name: (item.text or "").strip() for name, item in found.items() if item is not None}
    facts = {name: text for name, text in texts.items() if text not in _NOTHING}
    facts["migPartitions"] = str(len(gpu.findall("mig_devices/mig_device")))
    return SmiCard(
        uuid=gpu.findtext("uuid", "").strip(), facts=facts, known=frozenset((*texts, *facts))
    )


def _first(gpu: ET.Element, *paths: str) -> ET.Element | None:
    return next((found for path in paths if (found := gpu.find(path)) is not None), None)
