"""The node axis: what the controller does with a pod that waits at our gate.

It asks the planner for the best node, writes the nomination, and lifts the gate.
"""

import msgspec

from driver.cli.simulation.apiserver import Raw
from driver.cli.simulation.world import World
from driver.controller.planner import Plan
from driver.controller.sentence import node_told
from driver.model import names
from driver.model.core import Pod
from driver.wire import decode


class Placed(msgspec.Struct, frozen=True):
    """The pod as it is stored after its placement, and what there is to say about the node."""

    pod: Raw
    why: tuple[str, ...] = ()


def place(world: World, raw: Raw) -> Placed:
    """Nominate the best node, if one fits, and lift the gate; a pod not of ours stays as it is.

    Without a node the gate is lifted all the same: the scheduler then says why the pod waits. Asked
    again after a denial, it nominates afresh.
    """
    if names.POD_LABEL not in (raw["metadata"].get("labels") or {}):
        return Placed(raw)
    pod = decode.convert(Pod, raw)
    world.planner.withdraw(pod.metadata.uid)
    plan = world.planner.plan(pod)
    world.planner.nominate(pod, plan)
    status = {**raw.get("status", {}), "nominatedNodeName": plan.node or ""}
    stored = world.api.update({**_ungated(raw), "status": status})
    return Placed(stored, _why(plan))


def _why(plan: Plan) -> tuple[str, ...]:
    """Why this node; of a pod that fits nowhere the scheduler says why."""
    if plan.node is not None:
        return (node_told(plan),)
    return () if plan.fits_nowhere else (f"its node is left to the scheduler: {plan.why}",)


def _ungated(raw: Raw) -> Raw:
    gates = [
        gate
        for gate in raw["spec"].get("schedulingGates") or ()
        if gate["name"] != names.PLACEMENT_GATE
    ]
    return {**raw, "spec": {**raw["spec"], "schedulingGates": gates}}
