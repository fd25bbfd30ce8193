"""The controller process, put together: who is wired to whom, what starts and stops when.

Every replica watches the cluster and reviews pods. The leader alone answers commits, places pods
and looks after what stays behind.
"""

import asyncio
import signal
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry

from driver.admission import configuration
from driver.admission.certificates import CERTIFICATE_FILE, KEY_FILE, ServingCertificate
from driver.admission.commit import CommitHook
from driver.admission.configs import ConfigHandler
from driver.admission.lookup import Lookup
from driver.admission.pods import PodHandler
from driver.admission.rotation import OwnCertificates
from driver.admission.server import AdmissionServer, Route
from driver.cli import scorers
from driver.cli.ui.pictures import Pictures
from driver.cli.ui.server import LOCAL, Ui, needs_local
from driver.controller.aftermath import Aftermath
from driver.controller.census import Census
from driver.controller.claims import ClaimWriter
from driver.controller.cluster import Cluster
from driver.controller.exposition import StateCollector, keep_counting
from driver.controller.held import HeldDevices
from driver.controller.leaderlabel import LeaderLabel
from driver.controller.leadership import Leadership
from driver.controller.placement import Placement
from driver.controller.planner import Planner
from driver.controller.podwriter import RestPodWriter
from driver.controller.policies import resolve
from driver.controller.rivals import Rivals
from driver.controller.settings import ControllerSettings
from driver.controller.strangers import Strangers
from driver.controller.takeover import take_over
from driver.controller.templates import Templates
from driver.controller.tending import Tending
from driver.controller.term import Term
from driver.controller.warming import collect_seldom, keep_warm, warm_up
from driver.controller.watches import Watches
from driver.kube.discovery import Served, discover
from driver.kube.election import Election
from driver.kube.events import Recorder
from driver.kube.rest import ONCE, Rest
from driver.kube.session import open_session
from driver.kube.transport import Session
from driver.model.errors import QuadrantError
from driver.model.ids import ObjectKey
from driver.obs import health, scrape
from driver.obs.metrics import ControllerMetrics
from driver.policy.registry import Registry

_log = structlog.get_logger(__name__)

LEASE = "quadrant-controller"
SECRET = "quadrant-webhooks"  # noqa: S105 # its name, not its content
# A webhook configuration that is created after us must learn soon whom to trust.
CERTIFICATES_EVERY_S = 60.0
# So long a Service may still lead to a pod that is about to end. A review that finds nobody there
# is lost: a pod that was not looked at gets no card.
FORGOTTEN_WITHIN_S = 5.0


async def run(settings: ControllerSettings) -> None:
    """Be one replica of the controller until SIGTERM or SIGINT.

    Raises `QuadrantError` when it cannot start, and whatever ends one of its parts.
    """
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(open_session(settings.kubeconfig))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="quadrant-")))
        served = await discover(Rest(session), driver=settings.driver)
        registry = scorers.installed()
        # A default that means nothing would refuse every pod.
        resolve(None, None, {}, None, defaults=settings.defaults, registry=registry)
        await Controller(settings, session, served, folder, registry=registry).run()


class Controller:
    """One replica: the constructor wires, `run` starts."""

    def __init__(
        self,
        settings: ControllerSettings,
        session: Session,
        served: Served,
        folder: Path,
        *,
        registry: Registry,
    ) -> None:
        self._settings = settings
        self._metrics = ControllerMetrics(CollectorRegistry())
        rest = self._rest = Rest(session, answered=self._metrics.called)
        self._cluster = Cluster(
            driver=settings.driver,
            features=served.features,
            defaults=settings.defaults,
            extended_resources=served.extended_resources,
            registry=registry,
        )
        self._term = Term()
        self._census = Census(self._cluster)
        self._events = Recorder(
            rest, controller=f"{settings.driver}/controller", instance=settings.identity
        )
        self._claims = ClaimWriter(rest)
        self._templates = Templates(rest, _now)
        self._held = HeldDevices(rest, served.taint_rules, self._cluster.ledger)
        self._placement = Placement(
            self._cluster,
            Planner(self._cluster),
            writer=RestPodWriter(rest),
            tells=self._events,
            metrics=self._metrics,
        )
        self._watches = Watches(
            rest,
            self._cluster,
            self._placement,
            self._held,
            rivals=Rivals(self._claims, self._term, clock=time.monotonic),
            taint_rules=served.taint_rules,
            clock=time.monotonic,
            landed=self._metrics.landed.observe,
        )
        self._metrics.registry.register(self._state())
        self._leadership = Leadership(self._term, self._lead)
        self._election = self._candidacy(session)
        self._label = self._leader_label(session)
        self._certificates = self._own_certificates(folder)
        given = Path(settings.certificates) if settings.certificates else folder
        self._serving = ServingCertificate(given / CERTIFICATE_FILE, given / KEY_FILE)
        self._server = self._admission()
        self._not_serving: str | None = "not served yet"

    async def run(self) -> None:
        """Watch, serve, stand for election; until a signal, or until a part fails."""
        collect_seldom()
        stop = _stop_signal()
        health_server = await self._serve_health()
        try:
            async with asyncio.TaskGroup() as group:
                parts = [
                    group.create_task(part)
                    for part in (self._watches.run(), self._events.run(), self._leadership.run())
                ]
                await self._start_serving()
                parts += [
                    group.create_task(part)
                    for part in (
                        keep_warm(self._cluster),
                        keep_counting(self._census),
                        self._serving.follow(),
                        self._renew_certificates(),
                    )
                ]
                election = group.create_task(self._election.run())
                if self._label is not None:
                    parts.append(group.create_task(self._label.run()))
                await stop.wait()
                await self._stop(election)
                for part in reversed(parts):
                    part.cancel()
        finally:
            await health_server.cleanup()

    async def _start_serving(self) -> None:
        await self._watches.synced()
        await warm_up(self._cluster)
        await self._ensure_certificates()
        self._serving.load()
        await self._server.start()
        self._not_serving = None
        _log.info("serving", addresses=self._settings.webhook_addresses, port=self._server.port)

    async def _stop(self, election: asyncio.Task[None]) -> None:
        """Let another lead at once; answer until nobody asks any more."""
        self._not_serving = "shutting down"
        # From here on no commit is let through, so that nothing of ours lands in the next term.
        self._term.end()
        if self._label is not None:
            await self._label.leave()
        election.cancel()
        await asyncio.wait([election])
        if self._settings.pod_name:
            self._server.part()
            await asyncio.sleep(FORGOTTEN_WITHIN_S)
        await self._server.stop()

    def _state(self) -> StateCollector:
        return StateCollector(
            self._cluster,
            self._census,
            self._term,
            self._watches.informers,
            clock=time.monotonic,
            wall_clock=time.time,
        )

    # Leading

    def _candidacy(self, session: Session) -> Election:
        settings = self._settings
        return Election(
            session,
            self._leadership,
            namespace=settings.namespace,
            name=LEASE,
            # A process that comes back must not take its predecessor's term for its own.
            identity=f"{settings.identity}_{uuid.uuid4().hex[:8]}",
        )

    async def _lead(self, *, silent_from: float, resumed: bool) -> None:
        """From the lease to the first answer, and the leader's work ever after."""
        if not resumed:
            await take_over(self._watches.claims, self._claims, silent_from=silent_from)
        self._term.begin(after=time.monotonic())
        _log.info("leading")
        tending = Tending(
            self._cluster,
            claims=self._claims,
            templates=self._templates,
            held=self._held,
            clock=time.monotonic,
            on_reclaimed=self._metrics.reclaimed.inc,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(self._placement.run())
            group.create_task(tending.run())

    def _leader_label(self, session: Session) -> LeaderLabel | None:
        settings = self._settings
        if not settings.pod_name:
            return None
        return LeaderLabel(
            # It looks again anyway, and by then somebody else may lead.
            Rest(session, policy=ONCE),
            ObjectKey(settings.namespace, settings.pod_name),
            leads=lambda: self._election.still_leader(time.monotonic()),
        )

    # Serving

    def _admission(self) -> AdmissionServer:
        settings = self._settings
        resources = settings.resources
        hook = CommitHook(
            self._cluster,
            term=self._term,
            claims=self._claims,
            strangers=Strangers(self._rest, self._cluster, clock=time.monotonic),
            aftermath=Aftermath(self._cluster, self._placement, self._held, self._events),
            metrics=self._metrics,
        )
        lookup = Lookup(
            self._rest, self._cluster, device_class=settings.device_class, resources=resources
        )
        pods = PodHandler(lookup, self._templates, resources)
        configs = ConfigHandler(settings.driver)
        return AdmissionServer(
            {
                configuration.COMMIT_PATH: Route(handler=hook.review, fails_closed=True),
                configuration.PODS_PATH: Route(handler=pods.handle, fails_closed=False),
                configuration.CONFIGS_PATH: Route(handler=configs.handle, fails_closed=False),
            },
            self._serving.context,
            answered=lambda path, result, seconds: self._metrics.round_trips.labels(
                path, result
            ).observe(seconds),
            host=settings.listen_host,
            port=settings.listen_port,
        )

    def _own_certificates(self, folder: Path) -> OwnCertificates | None:
        settings = self._settings
        if settings.certificates:
            return None
        return OwnCertificates(
            self._rest,
            ObjectKey(settings.namespace, SECRET),
            hosts=settings.webhook_hosts(),
            configurations=[
                f"{configuration.MUTATING}/{configuration.COMMIT_CONFIGURATION}",
                f"{configuration.MUTATING}/{configuration.PODS_CONFIGURATION}",
                f"{configuration.VALIDATING}/{configuration.CONFIGS_CONFIGURATION}",
            ],
            folder=folder,
        )

    async def _ensure_certificates(self) -> None:
        if self._certificates is not None:
            await self._certificates.ensure(_now())

    async def _renew_certificates(self) -> None:
        while True:
            await asyncio.sleep(CERTIFICATES_EVERY_S)
            try:
                await self._ensure_certificates()
            except QuadrantError as error:
                # Also where somebody has spoilt the Secret. What is served is good for weeks yet;
                # the next turn tries again.
                _log.warning("certificates not looked after", error=str(error))

    async def _serve_health(self) -> web.AppRunner:
        app = web.Application()
        ready: dict[str, Callable[[], str | None]] = {
            "watches": lambda: None if self._watches.has_synced else "not all kinds are listed yet",
            "webhooks": lambda: self._not_serving,
        }
        app.add_routes(health.routes(live={}, ready=ready))
        app.add_routes([scrape.route(self._metrics.registry)])
        settings = self._settings
        pictures = Pictures(self._cluster, time.monotonic)
        app.add_routes(Ui(pictures, open_to_all=settings.ui).routes())
        runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await runner.setup()
        hosts = [settings.health_host, *([LOCAL] if needs_local(settings.health_host) else ())]
        for host in hosts:
            await web.TCPSite(runner, host, settings.health_port).start()
        return runner


def _stop_signal() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def _now() -> datetime:
    return datetime.now(UTC)
