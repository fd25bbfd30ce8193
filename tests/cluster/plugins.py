"""Node plugins beside, or in place of, those of the site: other options, other instances."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from hack.deployment import Part
from tests.cluster.api import Object
from tests.cluster.site import Site
from tests.cluster.workloads import CLASS

PROGRAM = ("-m", "driver.cli", "node")


def plugin(
    site: Site, node: str, *options: str, name: str = "other", program: Sequence[str] = PROGRAM
) -> Part:
    """An instance of the plugin for a node, not started; an option may be given again."""
    (known,) = (one for one in site.state["nodes"] if one["name"] == node)
    argv = [sys.executable, *program, *_told(site, known), *options]
    return Part(f"node-{node}-{name}", argv, site.deployment.folder / f"node-{node}-{name}.log")


def _told(site: Site, node: Object) -> list[str]:
    settings = {
        "node-name": node["name"],
        "simulate": node["gpus"],
        "kubeconfig": site.state["kubeconfig"],
        "plugins-dir": node["plugins_dir"],
        "registry-dir": node["registry_dir"],
        "cdi-dir": node["cdi_dir"],
    }
    return [f"--{key}={value}" for key, value in settings.items()]


def registered(site: Site, part: Part) -> None:
    """Wait until the kubelet has taken it."""
    site.wait(
        lambda: f"{part.name} to be registered:\n{part.tail()}",
        lambda: part.said("registered with the kubelet"),
    )


@contextlib.contextmanager
def away(site: Site, node: str) -> Iterator[None]:
    """The node's own plugin does not run; afterwards it does, and what it publishes is there."""
    own, before = site.deployment.nodes[node], devices(site, node)
    site.require_no_double_use()
    own.stop()
    _forget_cards(site, node)
    try:
        yield
        # As long as it can be seen what the other plugin's devices are.
        site.require_no_double_use()
    finally:
        _forget_cards(site, node)
        own.start()
        registered(site, own)
        site.wait("the node's own cards", lambda: devices(site, node) == before)


def _forget_cards(site: Site, node: str) -> None:
    """Other cards in a machine take a reboot: what is noted of the ones before is gone then."""
    (known,) = (one for one in site.state["nodes"] if one["name"] == node)
    for name in ("cards.json", "health.json"):
        (Path(known["plugins_dir"]) / CLASS / name).unlink(missing_ok=True)


def devices(site: Site, node: str) -> list[Object]:
    """What is published of a node."""
    parts = [one["spec"] for one in site.api.list("slices") if one["spec"]["pool"]["name"] == node]
    return [device for part in parts for device in part.get("devices", [])]


@contextlib.contextmanager
def running(site: Site, part: Part) -> Iterator[Part]:
    """From the kubelet's knowing it to its end."""
    part.start()
    try:
        registered(site, part)
        yield part
    finally:
        part.stop()
