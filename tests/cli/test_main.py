"""The program itself: commands, errors, and what is imported when."""

import subprocess
import sys

import pytest

from driver.cli.entry import main
from tests.cli.conftest import Quadrant

PROGRAM = [sys.executable, "-m", "driver.cli"]


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, check=False)


def test_an_error_is_one_sentence_and_status_1() -> None:
    """Nobody is shown a traceback for a wrong file."""
    done = _run("simulate", "-f", "/nowhere.yaml")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("quadrant: /nowhere.yaml: cannot be read")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate",),
        ("simulate", "-f", "x", "--policy", "tight"),
        ("simulate", "-f", "x", "--policy", "compact/"),
        ("simulate", "-f", "x", "--kubernetes", "2.0"),
        ("simulate", "-f", "x", "--fail-below", "x=1"),
        ("simulate", "-f", "x", "-o", "yaml"),
        ("simulate", "--trace", "n", "t", "--policy", "tight"),
        ("explain", "node/a"),
        ("explain", "pod/a", "--gpu-policy", "tight"),
        ("explain", "pod/a", "-o", "wide"),
        ("explain", "pod/a", "--request-timeout", "soon"),
        ("controller", "--node-policy", "tight"),
        ("controller", "--hami-resource", "memory=vram"),
        ("controller", "--hami-resource", "vram=example.com/vram"),
        ("controller", "--hami-resource", "memory=nvidia.com/gpu"),
        ("node", "--node-name", "n", "--plugins-dir", "relative"),
    ],
)
def test_a_wrong_call_is_one_sentence_and_status_2(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever means nothing on the command line, before any file or cluster is read."""
    monkeypatch.setattr(sys, "argv", ["quadrant", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("quadrant: ")


@pytest.mark.parametrize("command", ["controller", "node"])
def test_help_of_the_processes_lists_their_settings(command: str) -> None:
    """The processes read their own arguments, help included."""
    done = _run(command, "--help")
    assert done.returncode == 0
    assert f"usage: quadrant {command}" in done.stdout.lower()
    assert "--kubeconfig" in done.stdout


def test_the_list_of_commands_cuts_no_sentence_off() -> None:
    """What a command does fits its line, also in a terminal of 80 columns."""
    done = _run("--help")
    assert done.returncode == 0
    assert "..." not in done.stdout.partition("Commands:")[2]


def test_a_missing_option_is_status_2() -> None:
    """A node plugin has to know its node."""
    done = _run("node")
    assert done.returncode == 2
    assert "--node-name" in done.stderr


def test_settings_of_the_node_are_checked() -> None:
    """What the settings refuse is told as an error, before anything starts."""
    done = _run("node", "--node-name", "n", "--simulate", "4xT4", "--plugins-dir", "relative")
    assert done.returncode == 2
    assert "must be an absolute path" in done.stderr


def test_help_imports_no_client_and_no_allocator(quadrant: Quadrant) -> None:
    """`--help` has to answer at once."""
    code = (
        "import sys; from typer.testing import CliRunner; from driver.cli.main import app; "
        "CliRunner().invoke(app, ['--help']); "
        "print([name for name in ('kubernetes', 'grpc', 'aiohttp', 'rich', 'msgspec', 'yaml', "
        "'driver.allocator') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert "simulate" in quadrant("--help").stdout


@pytest.mark.parametrize(
    ("called", "usage"),
    [
        ("/usr/bin/quadrant", "Usage: quadrant simulate"),
        ("/usr/bin/kubectl-quadrant", "Usage: kubectl quadrant simulate"),
    ],
)
def test_usage_says_what_was_typed(
    called: str, usage: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a plugin of kubectl the program is called by kubectl's name."""
    monkeypatch.setattr(sys, "argv", [called, "simulate", "--help"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert usage in capsys.readouterr().out


def test_version(quadrant: Quadrant) -> None:
    """One line."""
    (told,) = quadrant("version").stdout.splitlines()
    assert quadrant("--version").stdout.splitlines() == [told]
