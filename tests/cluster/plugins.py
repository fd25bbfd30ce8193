"""Node plugins beside, or in place of, those of the site: other options, other instances."""

import contextlib
import sys
from collections.abc import Iterator, Sequence

from hack.deployment import Part
from tests.cluster.api import Object
from tests.cluster.site import Site

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
def in_place(site: Site, node: str, part: Part) -> Iterator[Part]:
    """This plugin runs in place of the node's own; no pod may use the node's cards."""
    own = site.deployment.nodes[node]
    own.stop()
    part.start()
    try:
        registered(site, part)
        yield part
    finally:
        part.stop()
        own.start()
        registered(site, own)
