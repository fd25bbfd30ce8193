"""What does a person type, and what do they read? Must not do the work itself."""

import argparse
import dataclasses
import json
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import binaries, cluster, node, process, progress, state
from .controlplane import Options
from .errors import ClusterError
from .layout import cache, layout

_DESCRIPTION = "A real Kubernetes on this machine, without Docker. See docs/development/cluster.md."
_NODES = "t4=4xT4,a10g=4xA10G"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0, or 1 with a sentence on stderr."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except ClusterError as problem:
        print(f"hack/cluster: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("hack/cluster: interrupted; hack/cluster down removes the rest", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hack/cluster", description=_DESCRIPTION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_up(commands)
    down = _add(commands, "down", _down, "remove the cluster and all its traces")
    status = _add(commands, "status", _status, "say what runs, and where its files are")
    status.add_argument("-o", "--output", choices=("text", "json"), default="text")
    kubeconfig = _add(commands, "kubeconfig", _kubeconfig, "print the kubeconfig's path")
    logs = _add(commands, "logs", _logs, "print the log of a component")
    restart = _add(commands, "restart", _restart, "stop a component, start it, wait until ready")
    kill = _add(commands, "kill", _kill, "signal a component")
    kill.add_argument("--signal", default="KILL", help="KILL, TERM, STOP, CONT, ... (default KILL)")
    for with_component in (logs, restart, kill):
        with_component.add_argument("component", help="kube-scheduler, kubelet/NODE, ...")
    build = _add(commands, "build", _build, "only build the programs")
    _add_version(build)
    for with_name in (down, status, kubeconfig, logs, restart, kill):
        _add_name(with_name)
    return parser


def _add(commands: Any, name: str, run: object, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(run=run)
    return parser


def _add_up(commands: Any) -> None:
    up = _add(commands, "up", _up, "bring a cluster up")
    _add_name(up)
    _add_version(up)
    shape = up.add_mutually_exclusive_group()
    shape.add_argument("--nodes", default=_NODES, help=f"default {_NODES}")
    shape.add_argument("--control-plane-only", action="store_true", help="no nodes; needs no root")
    up.add_argument("--feature-gates", default="", metavar="A=true,...", help="for all components")
    up.add_argument("--runtime-config", default="", metavar="API=true,...", help="APIs to serve")
    up.add_argument("--qps", type=int, help="client limit of scheduler and controller-manager")
    up.add_argument("--json-storage", action="store_true", help="etcd holds JSON, for tests")


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default="dev", help="which cluster (default dev)")


def _add_version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kubernetes", choices=binaries.VERSIONS, default=binaries.VERSIONS[0])


def _up(options: argparse.Namespace) -> int:
    begin = time.monotonic()
    request = cluster.Request(
        name=options.name,
        kubernetes=options.kubernetes,
        nodes=() if options.control_plane_only else node.parse_nodes(options.nodes),
        options=Options(
            feature_gates=options.feature_gates,
            runtime_config=options.runtime_config,
            qps=options.qps,
            json_storage=options.json_storage,
        ),
    )
    found = cluster.up(request)
    took = progress.duration(time.monotonic() - begin)
    progress.say(f"cluster {found.name}, Kubernetes {found.kubernetes}, is up after {took}")
    print(f"export KUBECONFIG={found.kubeconfig}")
    return 0


def _down(options: argparse.Namespace) -> int:
    begin = time.monotonic()
    removed = cluster.down(options.name)
    took = progress.duration(time.monotonic() - begin)
    progress.say(f"cluster {options.name} is gone, {took}" if removed else "there was no cluster")
    return 0


def _found(name: str) -> state.State:
    return cluster.known(layout(name))


def _status(options: argparse.Namespace) -> int:
    """Exit status 0 when all components run, 1 when one does not."""
    found = _found(options.name)
    running = {part.name: process.alive(part.process) for part in found.components}
    if options.output == "json":
        view = dataclasses.asdict(found)
        for part in view["components"]:
            part["running"] = running[part["name"]]
        print(json.dumps(view, indent=2))
    else:
        print(f"cluster {found.name}, Kubernetes {found.kubernetes}, {found.server}")
        for one in found.nodes:
            print(f"  node {one.name:15} {one.gpus:12} {one.address:12} {one.kubelet_dir}")
        for part in found.components:
            pid = part.process.pid if part.process and running[part.name] else "not running"
            print(f"  {part.name:27} {pid}")
    return 0 if running and all(running.values()) else 1


def _kubeconfig(options: argparse.Namespace) -> int:
    print(_found(options.name).kubeconfig)
    return 0


def _logs(options: argparse.Namespace) -> int:
    part = cluster.component_of(_found(options.name), options.component)
    sys.stdout.write(Path(part.log).read_text(encoding="utf-8", errors="replace"))
    return 0


def _restart(options: argparse.Namespace) -> int:
    with progress.step(f"restarted {options.component}"):
        cluster.change(options.name, options.component, cluster.restart)
    return 0


def _kill(options: argparse.Namespace) -> int:
    name = f"SIG{options.signal.removeprefix('SIG').upper()}"
    if name not in signal.Signals.__members__:
        raise ClusterError(f"{options.signal!r} is no signal: use KILL, TERM, STOP or CONT")

    def send(_: state.State, part: state.Component) -> state.Component:
        if not process.send(part.process, signal.Signals[name]):
            raise ClusterError(f"{part.name} does not run: hack/cluster restart {part.name}")
        return part

    cluster.change(options.name, options.component, send)
    return 0


def _build(options: argparse.Namespace) -> int:
    programs = binaries.ensure(options.kubernetes, cache=cache())
    for name, path in programs.items():
        print(f"{name:24} {path}")
    return 0
