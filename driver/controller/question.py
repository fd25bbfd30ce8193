"""What is asked of the nodes for a pod; pods that ask the same share their answers.

Two replicas of a workload differ in names and UIDs only, and those are not part of a question.
"""

from functools import cached_property

import msgspec

from driver.allocator.problem import Problem
from driver.controller.cluster import Cluster
from driver.controller.fit import Demands, demands
from driver.controller.needs import Needs
from driver.controller.nominations import Together
from driver.controller.policies import Policies, strongest
from driver.model.api import NodeSelector
from driver.model.core import Node, Pod
from driver.model.resourceclaim import ResourceClaim
from driver.wire.encode import encode


class Question(msgspec.Struct, frozen=True, dict=True):
    """Where do these claims get the best devices?

    `claims` are to be allocated together on one node; `bound_to` selects the nodes on which the
    pod's other claims can be used. `usual` numbers the usual requests that the policies go by.
    """

    demands: Demands
    claims: tuple[ResourceClaim, ...]
    bound_to: tuple[NodeSelector, ...]
    node_policy: str
    gpu_policy: str
    weights: str = ""
    usual: int = 0

    @cached_property
    def key(self) -> bytes:
        """The same for questions that have the same answers."""
        specs = tuple(claim.spec for claim in self.claims)
        policies = (self.node_policy, self.gpu_policy, self.weights, self.usual)
        return encode((self.demands, specs, self.bound_to, policies))


class Asked(msgspec.Struct, frozen=True):
    """A question, with what it came from: the policies that decide."""

    question: Question
    policies: Policies


def ask(pod: Pod, needed: Needs, cluster: Cluster) -> Asked | None:
    """The question for a pod whose claims exist; None when it has nothing to be chosen.

    A claim that was promised devices for another pod binds this one to the same node. Raises
    `UnknownPolicyError`.
    """
    promised = {
        claim.metadata.uid: cluster.nominations.promised(claim.metadata.uid)
        for claim in needed.waiting
        if claim.metadata.uid
    }
    if not needed.waiting:
        return None
    policies = strongest([cluster.policies(claim, pod) for claim in needed.waiting])
    settled = [claim.status.allocation for claim in needed.allocated]
    given = [one for one in (*settled, *promised.values()) if one is not None]
    question = Question(
        demands=demands(pod, needed.by_devices),
        claims=tuple(claim for claim in needed.waiting if promised.get(claim.metadata.uid) is None),
        bound_to=tuple(one.node_selector for one in given if one.node_selector is not None),
        node_policy=policies.node.value,
        gpu_policy=policies.gpu.value,
        weights=policies.weights.value,
        usual=cluster.scoring.version(policies.node.value, policies.gpu.value),
    )
    return Asked(question, policies)


def problem(question: Question, node: Node, cluster: Cluster) -> Problem:
    """The question as put to one node, with what is in use and what others are expected to take.

    Devices released a moment ago count as free: the scheduler will know when it gets there.
    """
    return Problem(
        node=node,
        claims=question.claims,
        classes=cluster.classes,
        pools=cluster.inventory.pools(node),
        usage=Together(cluster.ledger.use(), cluster.nominations.use()),
        features=cluster.features,
        driver=cluster.driver,
    )
