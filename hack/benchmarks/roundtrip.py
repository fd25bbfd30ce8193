"""How long the API server waits for an answer of the commit hook: HTTPS on loopback.

The real server with the real hook behind it. The reference is the same server with a hook that
allows everything unread, turn by turn: what is over that is Quadrant's.
"""

import asyncio
import gc
import ssl
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
from prometheus_client import CollectorRegistry

from driver.admission.authority import KeyPair, issue, new_authority
from driver.admission.certificates import CERTIFICATE_FILE, KEY_FILE, ServingCertificate, store
from driver.admission.commit import CommitHook
from driver.admission.server import AdmissionServer, Allowed, Answer, Call, Route
from driver.controller.aftermath import Aftermath
from driver.controller.claims import ClaimWriter
from driver.controller.held import HeldDevices
from driver.controller.placement import Placement
from driver.controller.planner import Planner
from driver.controller.podwriter import RestPodWriter
from driver.controller.strangers import Strangers
from driver.controller.term import Term
from driver.kube.events import Recorder
from driver.kube.rest import Rest
from driver.obs.metrics import ControllerMetrics
from driver.wire.admission import AdmissionRequest
from hack.benchmarks.decisions import LEVELS, Case, ready
from hack.benchmarks.figures import Figure, Section, spread
from hack.benchmarks.fleet import Fleet
from hack.benchmarks.stage import Question, Stage
from hack.benchmarks.workloads import WHOLE
from tests.kube.apiserver import ApiServer

_COMMIT, _NOTHING = "/commit", "/nothing"


def measure(*, nodes: int, reviews: int, seed: int) -> Section:
    """So many reviews of whole cards, in clusters of every fullness."""
    figures = []
    for level in LEVELS:
        case = Case(WHOLE, level, "compact")
        made = ready(Fleet(nodes), level, seed)
        figures.append(asyncio.run(_measured(case, made, reviews)))
        gc.unfreeze()
    title = f"commit hook over HTTPS at {nodes} nodes x 8 GPUs, one review at a time"
    return Section(title, "a hook that allows everything", tuple(figures))


async def _measured(case: Case, made: Stage, reviews: int) -> Figure:
    asked: list[float] = []
    passed: list[float] = []
    async with ApiServer() as api, api.session() as session, _served(made, Rest(session)) as caller:
        for _ in range(reviews):
            question = made.question()
            asked.append(await caller.ask(_COMMIT, question))
            passed.append(await caller.ask(_NOTHING, question))
            # The same question again gets the same answer: rule 1 of the hook.
            made.land(question, made.answer(question))
    return Figure(name=case.name, unit="ms", value=spread(asked), reference=spread(passed))


class _Caller:
    """The API server's side: one connection that is kept."""

    def __init__(self, session: aiohttp.ClientSession, base: str) -> None:
        self._session, self._base = session, base

    async def ask(self, path: str, question: Question) -> float:
        """Seconds until the answer was there; raises when it was a refusal."""
        headers = {"Content-Type": "application/json"}
        begin = time.perf_counter()
        async with self._session.post(
            f"{self._base}{path}?timeout=5s", data=question.review, headers=headers
        ) as response:
            body = await response.read()
        took = time.perf_counter() - begin
        if b'"allowed":true' not in body:
            raise RuntimeError(f"the hook refused a commit of the benchmark: {body.decode()}")
        return took


@asynccontextmanager
async def _served(made: Stage, rest: Rest) -> AsyncIterator[_Caller]:
    authority = new_authority("bench", now=datetime.now(UTC))
    with tempfile.TemporaryDirectory() as folder:
        certificate = _certificate(authority, Path(folder))
        hook = _hook(made, rest)
        server = AdmissionServer(
            {
                _COMMIT: Route(handler=hook.review, fails_closed=True),
                _NOTHING: Route(handler=_allow, fails_closed=True),
            },
            certificate.context,
        )
        await server.start()
        trusting = ssl.create_default_context(cadata=authority.certificate.decode())
        connector = aiohttp.TCPConnector(ssl=trusting)
        try:
            async with aiohttp.ClientSession(connector=connector) as session:
                yield _Caller(session, f"https://127.0.0.1:{server.port}")
        finally:
            await server.stop()


def _certificate(authority: KeyPair, folder: Path) -> ServingCertificate:
    store(issue(authority, ("127.0.0.1",), now=datetime.now(UTC)), folder)
    certificate = ServingCertificate(folder / CERTIFICATE_FILE, folder / KEY_FILE)
    certificate.load()
    return certificate


def _hook(made: Stage, rest: Rest) -> CommitHook:
    """The hook as `driver.cli.control` wires it, with the right to answer, on the stage's clock."""
    cluster = made.cluster
    events = Recorder(rest, controller="bench", instance="bench")
    metrics = ControllerMetrics(CollectorRegistry())
    placement = Placement(
        cluster, Planner(cluster), writer=RestPodWriter(rest), tells=events, metrics=metrics
    )
    term = Term()
    term.renewed(float("inf"))
    term.begin(after=0.0)
    return CommitHook(
        cluster,
        term=term,
        claims=ClaimWriter(rest),
        strangers=Strangers(rest, cluster, clock=lambda: made.now),
        aftermath=Aftermath(cluster, placement, HeldDevices(rest, None, cluster.ledger), events),
        metrics=metrics,
        clock=lambda: made.now,
    )


async def _allow(_: AdmissionRequest, __: Call) -> Answer:
    return Allowed()
