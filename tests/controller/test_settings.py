"""The controller's settings: what is worked out from them, and what is refused."""

import pytest

from driver.controller.settings import ControllerSettings, ControllerSettingsError


def test_certificates_are_for_every_way_to_the_webhooks() -> None:
    """Services are called by the name that the API server expects, URLs by their host."""
    settings = ControllerSettings(
        namespace="gpus",
        webhook_addresses=("service/quadrant-commit", "https://10.0.0.7:9443", "https://[::1]:1"),
    )
    assert settings.webhook_hosts() == ("quadrant-commit.gpus.svc", "10.0.0.7", "::1")


@pytest.mark.parametrize("address", ["", "127.0.0.1:9443", "http://127.0.0.1:9443", "https://"])
def test_an_address_that_nobody_can_call_is_refused(address: str) -> None:
    """The error names what was given and what is expected."""
    settings = ControllerSettings(webhook_addresses=(address,))
    with pytest.raises(ControllerSettingsError, match="expected https://HOST:PORT, or service/"):
        settings.webhook_hosts()
