"""What comes out of a mode without a cluster? The same code as `quadrant simulate`."""

from driver.cli.simulation.documents import read
from driver.cli.simulation.manifests import sort
from driver.cli.simulation.report import Report
from driver.cli.simulation.run import simulate
from driver.cli.simulation.world import Rules
from driver.controller.settings import ControllerSettings
from driver.simulator.releases import LATEST, release

from .modes import EXAMPLES, Mode, Row


def run(mode: Mode) -> Report:
    """The report on this mode's Deployment in an empty cluster."""
    files = (mode.manifest, EXAMPLES / "inventory.yaml", EXAMPLES / "deviceclass.yaml")
    rules = Rules(release=release(LATEST), defaults=ControllerSettings().defaults)
    return simulate(sort(read(str(file) for file in files)), rules)


def rows(report: Report) -> list[Row]:
    """The pods that run, each with its card."""
    return [
        Row(placement.pod, placement.node, device.index, device.uuid)
        for placement in report.placements
        for device in placement.devices
    ]
