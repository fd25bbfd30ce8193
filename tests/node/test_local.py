"""What the plugin has on its machine, put together while another instance still works on it."""

from pathlib import Path

from msgspec import structs

from driver.node.card import Card
from driver.node.local import LocalNode
from driver.node.mig import MigInstance
from driver.node.settings import NodeSettings
from driver.node.sharing.witness import Witness
from driver.node.simulated import cards
from tests.node.builders import NODE

PART = MigInstance(uuid="MIG-mine", profile="1g.10gb", start=6, size=1)


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


def test_a_part_that_the_old_instance_removes_is_still_ours(tmp_path: Path) -> None:
    """Its card goes on being offered whole and in all parts, not as what it was cut into."""
    settings = NodeSettings(
        node_name=NODE,
        simulate="1xH100-SXM",
        mig="dynamic",
        plugins_dir=f"{tmp_path}/p",
        cdi_dir=f"{tmp_path}/c",
    )
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    witness = Witness(Path(settings.data_dir()), boot=boot)
    (card,) = cards("1xH100-SXM", NODE)
    witness.note(card.uuid, PART)
    local = LocalNode(settings, cards=BesideAnother(witness))
    names = {device.name for device in local.offered.devices(counters=True)}
    local.close()
    assert {"gpu-0", "gpu-0-mig-1g10gb-6", "gpu-0-mig-3g40gb-0"} <= names
