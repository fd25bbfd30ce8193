"""`quadrant node`: an option for each setting of the node plugin, and nothing else.

Read with argparse, unlike all other commands: typer brings pydantic, which every node would pay
with 0.3 s of CPU at each start and 12 MiB for as long as the plugin lives.
"""

import argparse
import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from driver.cli.lean import Parser
from driver.cli.usage import UsageError, told_by
from driver.node.settings import NodeSettings
from driver.obs.lean import import_structlog

# What people read of each setting; `settings` says what it means for the plugin.
_HELP: Mapping[str, str] = {
    "node_name": "The node that this process serves.",
    "driver": "The driver's name.",
    "pod_uid": "UID of the plugin's pod; empty outside a pod.",
    "simulate": "Publish cards that are not there, such as 4xT4; empty: read NVML.",
    "inventory": "Where cards come from: nvml, simulated, or what a package brings.",
    "attribute_rules": "A file of rules that add attributes to devices; it may change.",
    "mig": "Cards in parts: off, static (as found) or dynamic (made for claims).",
    "mps_dir": "Where the keeper of MPS daemons is told what is wanted; empty: no MPS.",
    "hami_core_dir": "Where HAMi-core's library is on the host; empty: nothing keeps limits.",
    "shareable": "Several claims may hold parts of one card.",
    "kubeconfig": "Default: in-cluster credentials, else KUBECONFIG, else ~/.kube/config.",
    "plugins_dir": "The kubelet's folder of plugins.",
    "registry_dir": "The kubelet's folder of registrations.",
    "cdi_dir": "Where CDI files are written.",
    "vendor_cdi_dirs": "Where the NVIDIA Container Toolkit's CDI files may be; several.",
    "parallel_claims": "How many claims are prepared at the same time.",
    "unhealthy_effect": "What an unhealthy card does to pods: NoSchedule, or NoExecute.",
    "ignored_xids": "An XID that says nothing about a card; several.",
    "probe_port": "Where the kubelet's probes are answered (grpc.health.v1); 0: nowhere.",
    "metrics_host": "Where Prometheus reads metrics.",
    "metrics_port": "0: nowhere.",
    "quiet_seconds": "How long without another XID until one that asks for no reset is over.",
}
# Read where the option is not given.
VARIABLES: Mapping[str, str] = {
    "node_name": "NODE_NAME",
    "pod_uid": "POD_UID",
    "driver": "QUADRANT_DRIVER",
}


def call(arguments: Sequence[str]) -> None:
    """Serve one node until the process is told to end.

    Raises `UsageError` for a wrong call, and what `driver.node.run.run` raises.
    """
    import_structlog()
    settings, log_level = read(arguments)
    from driver.node.run import run  # noqa: PLC0415  (--help must not wait for it)
    from driver.obs import logging, tracing  # noqa: PLC0415

    logging.configure(log_level)
    tracing.configure("quadrant-node")
    asyncio.run(run(settings))


def options() -> Parser:
    """The parser, with an option for each setting under the setting's name."""
    parser = Parser(
        prog="quadrant node",
        description="Publish the GPUs of one node and prepare claims for its kubelet.",
    )
    for field in msgspec.structs.fields(NodeSettings):
        _add(parser, field)
    parser.add_log_level()
    return parser


def read(arguments: Sequence[str]) -> tuple[NodeSettings, str]:
    """What the command line says, and the log level; ends the process after `--help`."""
    told = vars(options().parse_args(arguments))
    if not told["node_name"]:
        raise UsageError("--node-name is missing: give the node that this process serves")
    fields = msgspec.structs.fields(NodeSettings)
    known = {f.encode_name: told[f.name] for f in fields if told[f.name] is not None}
    try:
        settings = msgspec.convert(known, NodeSettings, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(str(error)) from error
    with told_by("settings"):
        settings.check()
    return settings, str(told["log_level"])


def _add(parser: argparse.ArgumentParser, field: msgspec.structs.FieldInfo) -> None:
    name, default = field.name, None if field.required else field.default
    variable = VARIABLES.get(name)
    told: dict[str, Any] = {"dest": name, "help": _help(name, default, variable)}
    if variable is not None:
        told["default"] = os.environ.get(variable)
    if isinstance(default, bool):
        told["action"] = argparse.BooleanOptionalAction
    elif isinstance(default, tuple):
        name, told["action"] = name.removesuffix("s"), "append"
    elif isinstance(default, int | float):
        told["type"] = type(default)
    parser.add_argument(f"--{name.replace('_', '-')}", **told)


def _help(name: str, default: object, variable: str | None) -> str:
    shown = ", ".join(map(str, default)) if isinstance(default, tuple) else default
    origins = [f"${variable}"] if variable else []
    if shown not in (None, ""):
        origins.append(str(shown))
    text = _HELP[name] + (f" [{', else '.join(origins)}]" if origins else "")
    return text.replace("%", "%%")
