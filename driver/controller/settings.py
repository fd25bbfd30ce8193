"""What the controller can be told. Read strictly: a name that is not here is refused."""

from urllib.parse import urlsplit

import msgspec

from driver.controller.policies import Defaults
from driver.controller.translate import ResourceNames
from driver.model.errors import QuadrantError
from driver.model.names import DRIVER

_SERVICE = "service/"


class ControllerSettingsError(QuadrantError):
    """The controller was told something that cannot work."""


class ControllerSettings(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """Settings of one controller process."""

    # The driver's name in slices, claims and classes.
    driver: str = DRIVER
    # Not given: in-cluster credentials, else KUBECONFIG, else the user's own file.
    kubeconfig: str | None = None
    # Where our own objects live: the lease, the certificates.
    namespace: str = "quadrant-system"
    # What is unique to this replica, such as the pod's name; also who we are in events.
    identity: str = "quadrant"
    # The pod that this replica is, in `namespace`; empty outside a pod. The leader labels its own,
    # so that the commit hook's Service finds it.
    pod_name: str = ""
    # Policies where nobody says anything: no surprise for who comes from plain kube-scheduler,
    # but the cards are packed.
    defaults: Defaults = Defaults(node="compact", gpu="compact")
    # The class that HAMi's resources are translated to.
    device_class: str = DRIVER
    # The extended resource names that are translated, and what each means.
    resources: ResourceNames = ResourceNames()
    # Where the webhooks listen, in HTTPS.
    listen_host: str = "127.0.0.1"
    listen_port: int = 9443
    # How the API server reaches the webhooks: "https://HOST:PORT", or "service/NAME" for a Service
    # in `namespace`. The certificate is made for all of them.
    webhook_addresses: tuple[str, ...] = ("https://127.0.0.1:9443",)
    # A folder with tls.crt and tls.key given by others; empty: made by ourselves.
    certificates: str = ""
    # Where the kubelet's probes are answered and Prometheus reads metrics, in plain HTTP.
    health_host: str = "127.0.0.1"
    health_port: int = 8080
    # Whether others than this host may see the page (/ui, on the same port): it shows names of
    # namespaces, pods and claims.
    ui: bool = False

    def webhook_hosts(self) -> tuple[str, ...]:
        """The names and IP addresses by which the API server calls: whom the certificate is for.

        Raises `ControllerSettingsError` for an address of another form.
        """
        return tuple(self._host(address) for address in self.webhook_addresses)

    def _host(self, address: str) -> str:
        if address.startswith(_SERVICE):
            # The API server expects this name of a webhook's Service, whatever it dials.
            return f"{address.removeprefix(_SERVICE)}.{self.namespace}.svc"
        url = urlsplit(address)
        if url.scheme != "https" or not url.hostname:
            raise ControllerSettingsError(
                f"webhook address {address!r} cannot be used: "
                "expected https://HOST:PORT, or service/NAME"
            )
        return url.hostname
