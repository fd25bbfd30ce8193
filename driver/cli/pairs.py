"""How the policies of both axes are written on the command line: NODE/GPU, or one name for both."""

from driver.cli.usage import UsageError
from driver.controller.policies import Defaults
from driver.policy.registry import Registry


def pair(text: str, registry: Registry) -> Defaults:
    """Read NODE/GPU, or one name for both axes; raises `UsageError` or `PolicyError`."""
    node, slash, gpu = (part.strip() for part in text.partition("/"))
    gpu = gpu if slash else node
    if not (node and gpu):
        raise UsageError(
            f"policy {text!r} cannot be read: expected NODE/GPU, such as compact/spread, or one "
            "name for both axes; each may be several names joined by commas"
        )
    registry.node_scorer(node)
    registry.objective(gpu)
    return Defaults(node=node, gpu=gpu)
