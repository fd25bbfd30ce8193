"""The options of `quadrant node`: one for each setting, read as they were meant."""

import subprocess
import sys

import msgspec
import pytest

from driver.cli.node import read
from driver.cli.usage import UsageError
from driver.node.settings import NodeSettings


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NODE_NAME", "POD_UID", "QUADRANT_DRIVER"):
        monkeypatch.delenv(name, raising=False)


def test_what_is_not_told_has_its_default() -> None:
    """The settings' own."""
    assert read(["--node-name=a"]) == (NodeSettings(node_name="a"), "info")


def test_every_kind_of_value_is_read() -> None:
    """Text, number, switch, and a list that takes the place of the default."""
    told = ["--node-name", "a", "--parallel-claims", "3", "--no-shareable", "--simulate=2xT4"]
    lists = ["--vendor-cdi-dir", "/a", "--vendor-cdi-dir=/b"]
    settings, level = read([*told, *lists, "--log-level=debug"])
    assert settings == NodeSettings(
        node_name="a",
        parallel_claims=3,
        shareable=False,
        simulate="2xT4",
        vendor_cdi_dirs=("/a", "/b"),
    )
    assert level == "debug"


def test_variables_count_where_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the chart sets them."""
    monkeypatch.setenv("NODE_NAME", "a")
    monkeypatch.setenv("POD_UID", "u")
    assert read([])[0] == NodeSettings(node_name="a", pod_uid="u")
    assert read(["--node-name=b"])[0].node_name == "b"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--node-name is missing"),
        (["--node-name="], "--node-name is missing"),
        (["--node-name=a", "--parallel-claims=many"], "invalid int value: 'many'"),
        (["--node-name=a", "--sharable"], "unrecognized arguments: --sharable"),
        (["--node-name=a", "--plugins=/x"], "unrecognized arguments"),
        (["--node-name=a", "--plugins-dir=b"], "pluginsDir must be an absolute path"),
        (["--node-name=a", "--log-level=loud"], "invalid choice: 'loud'"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(arguments: list[str], said: str) -> None:
    """Also an option that is cut short: it could mean another one some day."""
    with pytest.raises(UsageError, match=said):
        read(arguments)


def test_every_setting_has_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    """And a sentence in the help."""
    with pytest.raises(SystemExit):
        read(["--help"])
    told = capsys.readouterr().out
    for field in msgspec.structs.fields(NodeSettings):
        assert f"--{field.name.replace('_', '-').removesuffix('s')}" in told


def test_the_plugin_does_not_pay_for_the_other_commands() -> None:
    """Neither at its start nor as long as it lives."""
    code = (
        "import sys; sys.argv = ['quadrant', 'node', '--node-name=a', '--simulate=1xK80']\n"
        "from driver.cli.entry import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = ('typer', 'pydantic', 'rich', 'kubernetes', 'aiohttp', 'driver.controller')\n"
        "print([name for name in heavy if name in sys.modules], 'driver.node.run' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] True"
