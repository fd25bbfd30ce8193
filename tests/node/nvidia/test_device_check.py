"""`hack/device-check`: discovery and NVIDIA's tool, compared."""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from driver.node.nvidia.inventory import NvmlInventory
from hack.devicecheck import smi
from hack.devicecheck.__main__ import Report
from hack.devicecheck.compare import differences
from tests.node.conftest import Boot

ROOT = Path(__file__).parents[3]
FIRST = "GPU-b1000000-0000-4000-8000-000000000000"


def check(
    *options: str, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The program, on the machine that this process is on."""
    return subprocess.run(
        [ROOT / "hack" / "device-check", *options],
        env={**os.environ, **(variables or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def output() -> str:
    """What the tool writes of the machine that this process is on."""
    run = subprocess.run(["nvidia-smi", "-q", "-x"], capture_output=True, text=True, check=True)
    return run.stdout


@pytest.mark.parametrize("description", ["a100x8", "t4x4", "h100x2-mig", "broken"])
def test_both_say_the_same(boot: Boot, description: str) -> None:
    """Of every machine that is described here, a lost card included."""
    boot(description)
    done = check()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("nvidia-smi says the same.\n")


@pytest.mark.parametrize("fabric", ["7 3 999", "7 2", "7 3"])
def test_both_say_the_same_of_a_fabric(boot: Boot, fabric: str) -> None:
    """One that failed, one that is not ready, one that is."""
    machine = boot("h100x2-mig")
    text = machine.description.read_text()
    cluster = "4f1e0c5a2b3d4e6f8091a2b3c4d5e6f7"
    machine.description.write_text(text.replace(f"{cluster} 7 3", f"{cluster} {fabric}"))
    assert differences(NvmlInventory().cards(), smi.parse(output())) == ()


def test_all_that_was_found_as_json(boot: Boot) -> None:
    """For a program, and for a report of a fault."""
    boot("h100x2-mig")
    report = msgspec.json.decode(check("--json").stdout, type=Report)
    assert report == Report(cards=NvmlInventory().cards(), differences=())


@pytest.mark.parametrize(
    ("said", "instead", "expected"),
    [
        ("580.95.05", "580.1", "driver versions: found 580.95.05, nvidia-smi says 580.1"),
        (">13.0<", ">12.8<", "CUDA versions: found 13.0, nvidia-smi says 12.8"),
        ("<attached_gpus>2", "<attached_gpus>3", "cards: found 2, nvidia-smi says 3"),
        ("H100 80GB", "H200", "productName: found NVIDIA H100 80GB HBM3, nvidia-smi says NVIDIA H"),
        (">NVIDIA<", ">Tesla<", "brand: found nvidia, nvidia-smi says tesla"),
        (">Hopper<", ">N/A<", "architecture: found Hopper, nvidia-smi says None"),
        (">HMM<", ">ATS<", "addressingMode: found HMM, nvidia-smi says ATS"),
        ("81559 MiB", "1 MiB", "memory: found 81559 MiB, nvidia-smi says 1 MiB"),
        (
            "id>00000000:1B",
            "id>00000000:1C",
            "pciBusID: found 0000:1b:00.0, nvidia-smi says 0000:1",
        ),
        ("id>1</gpu_m", "id>4</gpu_m", "gpuModuleID: found 1, nvidia-smi says 4"),
        (">Enabled</cur", ">Disabled</cur", "migMode: found Enabled, nvidia-smi says Disabled"),
        (
            "<mig_devices>",
            "<mig_devices><mig_device/>",
            "migPartitions: found 0, nvidia-smi says 1",
        ),
        ("cliqueId>7", "cliqueId>8", "fabric: found 4f1e0c5a-2b3d-4e6f-8091-a2b3c4d5e6f7.7, nvid"),
    ],
)
def test_every_difference_is_said(boot: Boot, said: str, instead: str, expected: str) -> None:
    """With both values; where it is of a card, with its UUID."""
    boot("h100x2-mig")
    head, _, tail = output().partition(said)
    found = differences(NvmlInventory().cards(), smi.parse(f"{head}{instead}{tail}"))
    assert len(found) == 1
    assert found[0].removeprefix(f"{FIRST} ").startswith(expected)


def test_cards_that_only_one_of_them_has(boot: Boot) -> None:
    """And those that both have are in the same order."""
    boot("h100x2-mig")
    cards = NvmlInventory().cards()
    text = output()
    start, end = text.index("\t<gpu "), text.index("</nvidia_smi_log>")
    first, second = text[start:end].split("\t<gpu ")[1:]
    only_first = smi.parse(f"{text[:start]}\t<gpu {first}{text[end:]}")
    assert differences(cards, only_first) == (
        f"{cards[1].uuid}: found, but nvidia-smi does not have it",
    )
    lost = msgspec.structs.replace(cards[1], lost="GPU is lost")
    assert differences([cards[0], lost], only_first) == ()
    swapped = smi.parse(f"{text[:start]}\t<gpu {second}\t<gpu {first}{text[end:]}")
    assert [line.partition(":")[0] for line in differences(cards, swapped)] == ["order"]
    assert f"{cards[1].uuid}: not found, but nvidia-smi has it" in differences(
        cards[:1], smi.parse(text)
    )


def test_what_an_old_tool_does_not_know_is_no_difference(boot: Boot) -> None:
    """It has no place for the addressing mode, the number on the board, the fabric."""
    boot("h100x2-mig")
    lines = [line for line in output().splitlines() if not re.search("addressing|module_id", line)]
    text = re.sub("<fabric>.*?</fabric>", "", "\n".join(lines), flags=re.DOTALL)
    assert differences(NvmlInventory().cards(), smi.parse(text)) == ()


def test_who_cannot_be_asked_is_named(boot: Boot, tmp_path: Path) -> None:
    """The library, or the tool; that is no difference."""
    machine = boot("t4x4")
    (machine.state / "errors").write_text("nvmlInitWithFlags 9\n")
    done = check()
    assert (done.returncode, done.stdout) == (2, "")
    assert "NVML cannot be used: Driver Not Loaded" in done.stderr
    (machine.state / "errors").unlink()
    broken = tmp_path / "nvidia-smi"
    broken.write_text("#!/bin/sh\necho no devices\nexit 6\n")
    broken.chmod(0o755)
    done = check(variables={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert done.returncode == 2
    assert "nvidia-smi -q -x failed with 6: no devices" in done.stderr
