"""Telling users what was decided for a pod and why: one line to the log and to an Event."""

from typing import Protocol

import structlog

from driver.controller.planner import Plan
from driver.controller.sentence import node_told, nowhere_told
from driver.kube.events import Subject
from driver.model.core import Pod

_log = structlog.get_logger(__name__)


class Tells(Protocol):
    """Where users are told; `driver.kube.events.Recorder` is one."""

    def record(
        self, subject: Subject, reason: str, note: str, *, action: str, warning: bool = False
    ) -> None:
        """Tell that `reason` happened to an object while doing `action`; never fails."""
        ...


def tell(tells: Tells, pod: Pod, plan: Plan) -> None:
    """Say what was decided for the pod and why."""
    if plan.node is not None:
        reason, note = "NodeNominated", node_told(plan)
    elif plan.fits_nowhere:
        reason, note = "NoNodeFits", nowhere_told(plan)
    else:
        _log.info("left to the scheduler", pod=key_of(pod), why=plan.why)
        return
    _log.info(note, pod=key_of(pod), node=plan.node)
    tells.record(subject(pod), reason, note, action="Place", warning=plan.node is None)


def subject(pod: Pod) -> Subject:
    """The pod as events refer to it."""
    metadata = pod.metadata
    return Subject(
        api_version="v1",
        kind="Pod",
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
    )


def key_of(pod: Pod) -> str:
    """The pod as logs name it."""
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
