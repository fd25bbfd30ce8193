"""Fixtures for tests of the node plugin on hardware, which the fake library stands for."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.node.nvml import fake

Boot = Callable[[str], fake.FakeMachine]


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the fake library and programs, built once; this process has it loaded."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    built = fake.build(tmp_path_factory.mktemp("nvml"))
    fake.load(built)
    return built


@pytest.fixture
def boot(nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Boot:
    """`boot("a100x8")` makes this process run on that machine (see `nvml/machines`)."""

    def start(description: str) -> fake.FakeMachine:
        folder = tmp_path / "hardware"
        folder.mkdir()
        machine = fake.FakeMachine(nvml_library, folder, description)
        for name, value in machine.variables().items():
            monkeypatch.setenv(name, value)
        return machine

    return start
