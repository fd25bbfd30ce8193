"""The node axis: which node is the best for a pod, and why.

A plan binds nobody: the scheduler tries the nominated node first and has the last word. This module
decides; it writes nothing and awaits nothing.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from driver.allocator.outcome import Allocated
from driver.controller.cluster import Cluster
from driver.controller.footprint import footprint
from driver.controller.kinds import Makes
from driver.controller.needs import needs
from driver.controller.nominations import SPECIAL, Nomination
from driver.controller.policies import Setting
from driver.controller.question import Asked, Question, ask
from driver.controller.verdicts import Fits, Misfit, Verdicts
from driver.model.allocation import Explanation, RejectionKind, Score
from driver.model.core import Pod
from driver.model.errors import AllocationError
from driver.model.resourceclaim import AllocationResult
from driver.policy.registry import NONE

# For so many different questions the answers are kept up to date.
_MOST_QUESTIONS = 64
_RUNNERS_UP = 3
# In so many nodes with the same obstacle it is looked for one that has the devices.
_TRIED_REMEDIES = 8


class NodeScore(msgspec.Struct, frozen=True):
    """A node that was possible."""

    node: str
    score: Score


class NodeRejection(msgspec.Struct, frozen=True):
    """Why some nodes were not possible: a reason, how many, and one of them.

    `remedy` is what would make that one fit, where that is known; `kinds` of which kinds the
    reason is.
    """

    reason: str
    count: int
    example: str
    remedy: str = ""
    kinds: tuple[RejectionKind, ...] = ()


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided for a pod.

    With a `node`, `allocations` are what the claims are expected to get there, by the claim's UID
    (`SPECIAL`: that of the special claim), and `devices` explains their choice. Without one, `why`
    says why; `fits_nowhere` tells that it is for want of a node, and then `rejections` list all.
    """

    node: str | None = None
    why: str = ""
    fits_nowhere: bool = False
    missing: tuple[str, ...] = ()
    policy: Setting | None = None
    score: Score = Score()
    allocations: Mapping[str, AllocationResult] = {}
    devices: Explanation = Explanation()
    runners_up: tuple[NodeScore, ...] = ()
    rejections: tuple[NodeRejection, ...] = ()


class Planner:
    """Plans for pods, against the cluster's state and what other pods are expected to take."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._makes = Makes()
        self._verdicts: OrderedDict[bytes, Verdicts] = OrderedDict()

    def prepare(self, pod: Pod, at_most: int) -> bool:
        """Work ahead for `plan`, not much more than `Verdicts.refresh` allows; whether all is done.

        Lets the caller attend to other things in between when very many nodes have changed.
        """
        asked = self._asked(pod)
        return not isinstance(asked, Asked) or self._of(asked.question).refresh(at_most)

    def plan(self, pod: Pod) -> Plan:
        """The best node for the pod as things stand; it should have no nomination of its own.

        Raises `UnknownPolicyError`.
        """
        asked = self._asked(pod)
        if isinstance(asked, Plan):
            return asked
        verdicts = self._of(asked.question)
        verdicts.refresh()
        best = verdicts.best(1 + _RUNNERS_UP)
        for chosen in best:
            allocated = _allocated(verdicts, chosen[0])
            if allocated is not None:
                others = (other for other in best if other is not chosen)
                return self._planned(asked, chosen, allocated, others)
        return Plan(
            why="no node fits",
            fits_nowhere=True,
            policy=asked.policies.node,
            rejections=tuple(rejections(verdicts)),
        )

    def stays(self, pod: Pod, node: str) -> Plan | None:
        """The plan to leave the pod on a node that was chosen before; None when it does not fit."""
        asked = self._asked(pod)
        if isinstance(asked, Plan):
            return None
        verdicts = self._of(asked.question)
        verdict = verdicts.of(node)
        allocated = _allocated(verdicts, node) if isinstance(verdict, Fits) else None
        if not isinstance(verdict, Fits) or allocated is None:
            return None
        plan = self._planned(asked, (node, verdict), allocated)
        return plan if plan.node is not None else None

    def explain(self, pod: Pod) -> Plan:
        """The same as `plan`, with the rejections also where a node was found."""
        plan = self.plan(pod)
        asked = self._asked(pod)
        if plan.node is None or isinstance(asked, Plan):
            return plan
        out = tuple(rejections(self._of(asked.question)))
        return msgspec.structs.replace(plan, rejections=out)

    def question(self, pod: Pod) -> bytes | None:
        """Equal for pods that get the same plan; None where there is nothing to be planned."""
        asked = self._asked(pod)
        return asked.question.key if isinstance(asked, Asked) else None

    def verdicts(self, pod: Pod) -> Verdicts | None:
        """What the nodes say to the pod's question; None where there is nothing to be planned."""
        asked = self._asked(pod)
        return self._of(asked.question) if isinstance(asked, Asked) else None

    def _asked(self, pod: Pod) -> Asked | Plan:
        needed = needs(pod, self._cluster)
        if needed.missing:
            return Plan(why=f"it waits for {needed.missing[0]}", missing=needed.missing)
        asked = ask(pod, needed, self._cluster)
        if asked is None:
            return Plan(why="no devices are to be chosen for it")
        if asked.policies.node.value == NONE:
            setting = asked.policies.node
            return Plan(why=f"the node policy is none ({setting.where})", policy=setting)
        return asked

    def _of(self, question: Question) -> Verdicts:
        known = self._verdicts.get(question.key)
        if known is None:
            known = self._verdicts[question.key] = Verdicts(question, self._cluster, self._makes)
            if len(self._verdicts) > _MOST_QUESTIONS:
                self._verdicts.popitem(last=False)
        self._verdicts.move_to_end(question.key)
        return known

    def _planned(
        self,
        asked: Asked,
        chosen: tuple[str, Fits],
        allocated: Allocated,
        others: Iterable[tuple[str, Fits]] = (),
    ) -> Plan:
        claims = (claim.metadata.uid or SPECIAL for claim in asked.question.claims)
        allocations = dict(zip(claims, allocated.allocations, strict=True))
        if allocations and not self._any_ours(allocations):
            return Plan(why="none of its devices are ours to choose", policy=asked.policies.node)
        node, fits = chosen
        return Plan(
            node=node,
            policy=asked.policies.node,
            score=fits.score,
            allocations=allocations,
            devices=allocated.explanation,
            runners_up=tuple(NodeScore(name, other.score) for name, other in others),
        )

    def _any_ours(self, allocations: Mapping[str, AllocationResult]) -> bool:
        return any(
            result.driver == self._cluster.driver
            for allocation in allocations.values()
            for result in allocation.devices.results
        )

    def nominate(self, pod: Pod, plan: Plan) -> None:
        """Enter the plan, so that the next ones count with it; one without a node clears it."""
        uid = pod.metadata.uid
        if plan.node is None:
            self.withdraw(uid)
            return
        self._cluster.occupancy.put(uid, plan.node, footprint(pod))
        version = self._cluster.facts.at(plan.node)
        self._cluster.nominations.put(Nomination(uid, plan.node, plan.allocations, version))

    def withdraw(self, uid: str) -> None:
        """Expect nothing for this pod any more. A pod that is bound keeps its place."""
        if self._cluster.nominations.get(uid) is not None:
            self._cluster.nominations.drop(uid)
            self._cluster.occupancy.drop(uid)


def _allocated(verdicts: Verdicts, node: str) -> Allocated | None:
    try:
        outcome = verdicts.allocate(node)
    except AllocationError:
        return None
    return outcome if isinstance(outcome, Allocated) else None


def rejections(verdicts: Verdicts) -> Iterator[NodeRejection]:
    """Why nodes are out of the question: all reasons, the most frequent first."""
    for reason, names in sorted(verdicts.out.items(), key=lambda item: (-len(item[1]), item[0])):
        example, remedy = _remedy(verdicts, names)
        misfit = verdicts.of(example)
        kinds = misfit.kinds if isinstance(misfit, Misfit) else ()
        yield NodeRejection(reason, len(names), example, remedy, kinds)


def ending_pods(node: str) -> str:
    """What helps where a node would do if nothing of it were in use."""
    return f"end pods on node {node} that have devices"


def _remedy(verdicts: Verdicts, names: Sequence[str]) -> tuple[str, str]:
    """An example, with what would help: one thing on some node, or else two on the same one."""
    two = names[0], ""
    for name in names[:_TRIED_REMEDIES]:
        misfit = verdicts.of(name)
        if not isinstance(misfit, Misfit):
            continue
        if misfit.devices and verdicts.fits_when_empty(name):
            return name, ending_pods(name)
        if misfit.remedy and verdicts.devices_fit(name):
            return name, misfit.remedy
        on_the_node = f"node {name}" in misfit.remedy
        if on_the_node and not two[1] and verdicts.fits_when_empty(name):
            two = name, f"{misfit.remedy}, and {ending_pods(name)}"
    return two
