"""What the plugin has on its machine, put together while another instance still works on it."""

from pathlib import Path
from typing import Literal

import pytest
import structlog
from msgspec import structs

from driver.node.card import Card
from driver.node.local import LocalNode
from driver.node.mig import MigInstance
from driver.node.settings import NodeSettings
from driver.node.sharing.witness import Witness
from driver.node.simulated import cards
from tests.node.builders import NODE

PART = MigInstance(uuid="MIG-mine", profile="1g.10gb", start=6, size=1)


def node(folder: Path, mig: Literal["off", "static", "dynamic"]) -> NodeSettings:
    """A plugin in a folder of its own."""
    return NodeSettings(
        node_name=NODE,
        simulate="1xH100-SXM",
        mig=mig,
        plugins_dir=f"{folder}/p",
        cdi_dir=f"{folder}/c",
    )


def witness(settings: NodeSettings) -> Witness:
    """What says of parts that the plugin has made them."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return Witness(Path(settings.data_dir()), boot=boot)


class BesideAnother:
    """One card with a part, which the old instance removes as soon as it was read."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness

    def cards(self) -> tuple[Card, ...]:
        """The card as it was just before."""
        (card,) = cards("1xH100-SXM", NODE)
        assert card.mig is not None
        mig = structs.replace(card.mig, enabled=True, instances=(PART,))
        self._witness.forget(PART.uuid)
        return (structs.replace(card, mig=mig),)


@pytest.mark.parametrize(("mig", "told"), [("off", 1), ("static", 0), ("dynamic", 0)])
def test_a_card_that_stays_in_mig_mode_is_told_of(
    tmp_path: Path, mig: Literal["off", "static", "dynamic"], told: int
) -> None:
    """Where nothing of it is published any more: with the command that brings it back."""
    settings = node(tmp_path, mig)
    with structlog.testing.capture_logs() as logs:
        local = LocalNode(settings, cards=BesideAnother(witness(settings)))
    local.close()
    said = [log for log in logs if "card not published" in log["event"]]
    assert len(said) == told
    assert all(log["command"].endswith(" -mig 0") for log in said)
    assert bool(local.offered.devices(counters=True)) == (not told)


def test_a_part_that_the_old_instance_removes_is_still_ours(tmp_path: Path) -> None:
    """Its card goes on being offered whole and in all parts, not as what it was cut into."""
    settings = node(tmp_path, "dynamic")
    made = witness(settings)
    (card,) = cards("1xH100-SXM", NODE)
    made.note(card.uuid, PART)
    local = LocalNode(settings, cards=BesideAnother(made))
    names = {device.name for device in local.offered.devices(counters=True)}
    local.close()
    assert {"gpu-0", "gpu-0-mig-1g10gb-6", "gpu-0-mig-3g40gb-0"} <= names
