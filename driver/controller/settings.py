"""What the controller can be told. Read strictly: a name that is not here is refused."""

import msgspec

from driver.controller.policies import Defaults
from driver.controller.translate import ResourceNames
from driver.model.names import DRIVER


class ControllerSettings(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """Settings of one controller process."""

    driver: str = DRIVER
    # None: in-cluster credentials, else KUBECONFIG, else the user's own file.
    kubeconfig: str | None = None
    # Where our own objects live: the lease, the certificates.
    namespace: str = "quadrant-system"
    # What is unique to this replica, such as the pod's name; also who we are in events.
    identity: str = "quadrant"
    # Policies where nobody says anything: no surprise for who comes from plain kube-scheduler,
    # but the cards are packed.
    defaults: Defaults = Defaults(node="compact", gpu="compact")
    # The class that HAMi's resources are translated to.
    device_class: str = DRIVER
    # The extended resource names that are translated, and what each means.
    resources: ResourceNames = ResourceNames()
    # Where the webhooks listen, and how the API server reaches them: "https://host:port", or
    # "service/NAME". The certificate is made for it.
    listen_host: str = "127.0.0.1"
    listen_port: int = 9443
    webhook_address: str = "https://127.0.0.1:9443"
    # A folder with tls.crt and tls.key (and ca.crt) given by others; empty: made by ourselves.
    certificates: str = ""
    # Plain HTTP for probes and metrics.
    health_host: str = "127.0.0.1"
    health_port: int = 8080
