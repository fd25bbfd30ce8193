"""What each node says to one question, kept up to date.

Only nodes that have changed are asked again, and of nodes that are the same only one. So a decision
costs what has changed since the last one, not the size of the cluster.
"""

import heapq
from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

import msgspec

from driver.allocator.allocate import allocate
from driver.allocator.outcome import Allocated, Unsatisfiable, choice, node_view
from driver.allocator.problem import Problem
from driver.controller.cluster import Cluster
from driver.controller.fit import may_select, unfit
from driver.controller.kinds import Kinds, Makes
from driver.controller.question import Question, problem
from driver.model.allocation import RejectionKind, Score
from driver.model.core import Node
from driver.model.errors import AllocationError, TooDearError
from driver.policy.weights import parse

# How good a node is, its name, and the number of the verdict.
_Entry = tuple[tuple[float, ...], str, int]
# Kinds of nodes come and go with their use; so many are remembered.
_MOST_KINDS = 20_000
# To search for devices takes so much longer than to look at a node of a known kind.
_LOOKS_A_SEARCH = 15


class Fits(msgspec.Struct, frozen=True):
    """The claims fit; `order` is the smaller, the better the node is."""

    order: tuple[float, ...] = ()
    score: Score = Score()


class Misfit(msgspec.Struct, frozen=True):
    """The pod cannot run there: why, and what would help, where that is known.

    `devices` says whether it is for want of devices, `kinds` of which kinds the reason is.
    """

    reason: str
    kinds: tuple[RejectionKind, ...]
    remedy: str = ""
    devices: bool = False


Verdict = Fits | Misfit


class Verdicts:
    """The verdicts of all nodes on one question.

    `evaluations` counts how often devices were searched for one, `steps` how many devices all
    searches have tried, `looks` how often a node was looked at.
    """

    def __init__(self, question: Question, cluster: Cluster, makes: Makes) -> None:
        self.question = question
        self.evaluations = 0
        self.steps = 0
        self.looks = 0
        self._cluster = cluster
        weights = parse(question.weights)
        self._scorer = cluster.scoring.node_scorer(question.node_policy, weights)
        self._objective = cluster.scoring.objective(question.gpu_policy, weights)
        self._makes = makes
        self._kinds = Kinds(question.claims, cluster, makes)
        self._of_kind: dict[Hashable, Verdict] = {}
        self._by_node: dict[str, Verdict] = {}
        # The nodes that the pod cannot run on by the reason, their names in order.
        self._out: dict[str, list[str]] = {}
        self._version = -1
        self._stale: dict[str, None] = {}
        # The best node first; an entry counts while its number is the node's latest.
        self._ranking: list[_Entry] = []
        self._number: dict[str, int] = {}
        self._entries = 0
        # Why no node is asked any more.
        self._too_dear = ""

    def refresh(self, at_most: int | None = None) -> bool:
        """Ask the nodes that have changed, and stop after so much work; whether none is left.

        A look at a node is 1, a search for devices as much as 15. Raises `TooDearError`, once and
        for all: what takes too long on one node is not tried on all others.
        """
        self._note_changes()
        begun = self._work()
        while self._stale and (at_most is None or self._work() - begun < at_most):
            name, _ = self._stale.popitem()
            self._ask(name)
        if len(self._ranking) > 2 * len(self._by_node) + 64:
            self._ranking = [entry for entry in self._ranking if self._counts(entry)]
            heapq.heapify(self._ranking)
        return not self._stale

    def best(self, count: int) -> list[tuple[str, Fits]]:
        """The best nodes, the best first; ties end on the name."""
        taken: list[_Entry] = []
        found: list[tuple[str, Fits]] = []
        while self._ranking and len(found) < count:
            entry = heapq.heappop(self._ranking)
            verdict = self._by_node.get(entry[1])
            if self._counts(entry) and isinstance(verdict, Fits):
                taken.append(entry)
                found.append((entry[1], verdict))
        for entry in taken:
            heapq.heappush(self._ranking, entry)
        return found

    def of(self, node: str) -> Verdict | None:
        """What this node says now; None when there is no such node. Raises `TooDearError`."""
        self._note_changes()
        if node in self._stale:
            del self._stale[node]
            self._ask(node)
        return self._by_node.get(node)

    def misfits(self) -> Iterator[tuple[str, Misfit]]:
        """All nodes that the pod cannot run on, by name."""
        for name in sorted(self._by_node):
            verdict = self._by_node[name]
            if isinstance(verdict, Misfit):
                yield name, verdict

    @property
    def out(self) -> Mapping[str, Sequence[str]]:
        """The nodes that the pod cannot run on: for each reason their names, in order."""
        return self._out

    def allocate(self, node: str) -> Allocated | Unsatisfiable:
        """The best devices of this node; raises `AllocationError`."""
        return self._search(problem(self.question, self._cluster.node(node), self._cluster))

    def devices_fit(self, node: str) -> bool:
        """Whether the devices alone would be there."""
        return isinstance(self._by_devices(self._cluster.node(node)), Fits)

    def fits_when_empty(self, node: str) -> bool:
        """Whether the devices would do if nobody used any."""
        return isinstance(self._by_devices(self._cluster.node(node), unused=True), Fits)

    def _work(self) -> int:
        return self.looks + _LOOKS_A_SEARCH * self.evaluations

    def _note_changes(self) -> None:
        changes = self._cluster.changes
        changed: Iterable[str] | None = changes.since(self._version)
        if changed is None:
            self._of_kind.clear()
            self._kinds = Kinds(self.question.claims, self._cluster, self._makes)
            changed = (*self._cluster.nodes, *self._by_node)
        self._version = changes.now
        self._stale.update(dict.fromkeys(changed))

    def _ask(self, name: str) -> None:
        self._forget(name)
        node = self._cluster.nodes.get(name)
        if node is None:
            return
        self.looks += 1
        if self._too_dear:
            raise TooDearError(self._too_dear)
        try:
            verdict = self._by_node[name] = self._verdict(node)
        except TooDearError as error:
            self._too_dear = str(error)
            raise
        if isinstance(verdict, Misfit):
            insort(self._out.setdefault(verdict.reason, []), name)
        else:
            self._entries += 1
            self._number[name] = self._entries
            heapq.heappush(self._ranking, (verdict.order, name, self._entries))

    def _forget(self, name: str) -> None:
        before = self._by_node.pop(name, None)
        self._number.pop(name, None)
        if isinstance(before, Misfit):
            names = self._out[before.reason]
            del names[bisect_left(names, name)]
            if not names:
                del self._out[before.reason]

    def _counts(self, entry: _Entry) -> bool:
        return self._number.get(entry[1]) == entry[2]

    def _verdict(self, node: Node) -> Verdict:
        why_not = unfit(self.question.demands, node, self._cluster.occupancy.on(node.metadata.name))
        if why_not is not None:
            return Misfit(why_not.reason, (why_not.kind,), why_not.remedy)
        if not all(may_select(selector, node) for selector in self.question.bound_to):
            reason = "another claim of the pod can only be used on other nodes"
            return Misfit(reason, (RejectionKind.NODE_SELECTION,))
        return self._by_devices(node)

    def _by_devices(self, node: Node, *, unused: bool = False) -> Verdict:
        kind = self._kinds.of(node, unused=unused)
        known = self._of_kind.get(kind) if kind is not None else None
        if known is not None:
            return known
        asked = problem(self.question, node, self._cluster)
        verdict = self._evaluate(msgspec.structs.replace(asked, usage={}) if unused else asked)
        if kind is not None:
            if len(self._of_kind) >= _MOST_KINDS:
                self._of_kind.clear()
            self._of_kind[kind] = verdict
        return verdict

    def _evaluate(self, asked: Problem) -> Verdict:
        self.evaluations += 1
        try:
            outcome = self._search(asked)
        except AllocationError as error:
            reason = f"allocation stops with an error: {error}"
            return Misfit(_anonymous(reason, asked), (RejectionKind.ERROR,), devices=True)
        if isinstance(outcome, Unsatisfiable):
            return Misfit(_lack(outcome, asked), outcome.kinds(), devices=True)
        if self._scorer is None:
            return Fits()
        view, chosen = node_view(asked), choice(asked, outcome.allocations)
        order = tuple(-value for value in self._scorer.rank(view, chosen))
        return Fits(order, self._scorer.score(view, chosen))

    def _search(self, asked: Problem) -> Allocated | Unsatisfiable:
        if not asked.claims:
            return Allocated(allocations=())
        outcome = allocate(asked, objective=self._objective)
        self.steps += outcome.steps
        return outcome


def _lack(outcome: Unsatisfiable, asked: Problem) -> str:
    """What the devices lack, without the names of those at hand: many nodes share a reason."""
    if outcome.truncated:
        return outcome.reason()
    reasons = dict.fromkeys(_anonymous(one.reason, asked) for one in outcome.rejections)
    return "; ".join(reasons) or outcome.reason()


def _anonymous(reason: str, asked: Problem) -> str:
    for pool in asked.pools:
        if str(pool.id) not in reason:
            continue
        for device in pool.devices:
            reason = reason.replace(f"device {device.id}", "a device")
        reason = reason.replace(f"resource pool {pool.id}", "a resource pool")
        reason = reason.replace(str(pool.id), "a resource pool of the node")
    return reason
