"""From which Go modules are the programs built?"""

import pytest

from hack.kubernetes import binaries, toolchain


def test_a_derived_module_takes_what_its_kubernetes_says() -> None:
    """Go version, settings and staging modules differ between versions; all are taken over."""
    upstream: dict[str, object] = {
        "Go": "1.24.0",
        "GoDebug": [{"Key": "default", "Value": "go1.24"}],
        "Replace": [
            {"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
            {"Old": {"Path": "k8s.io/kubectl"}, "New": {"Path": "./staging/src/k8s.io/kubectl"}},
        ],
    }
    lines = binaries.derive_module("1.34.4", upstream).splitlines()
    assert "go 1.24.0" in lines
    assert "godebug default=go1.24" in lines
    assert "require k8s.io/kubernetes v1.34.4" in lines
    assert "\tk8s.io/api => k8s.io/api v0.34.4" in lines
    assert "\tk8s.io/kubectl => k8s.io/kubectl v0.34.4" in lines
    assert "\tk8s.io/kubernetes/cmd/kubelet" in lines


def test_the_committed_module_requires_the_default_version() -> None:
    """The version that the command line offers first is the one that is built."""
    go_mod = (binaries.MODULE / "go.mod").read_text()
    assert f"k8s.io/kubernetes v{binaries.VERSIONS[0]}" in go_mod
    staged = f"v0.{binaries.VERSIONS[0].partition('.')[2]}"
    assert f"replace (\n\tk8s.io/api => k8s.io/api {staged}\n" in go_mod


def test_the_tool_block_names_every_program() -> None:
    """What is not there is not built."""
    packages = binaries.tool_packages((binaries.MODULE / "go.mod").read_text())
    names = {package.rpartition("/")[2] for package in packages}
    assert {"kube-apiserver", "kubelet", "containerd", "bridge", "crictl", "helm"} <= names


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("go1.26.8", (1, 26, 8)),
        ("1.26", (1, 26)),
        ("go1.27rc1", (1, 27)),
        ("go1.26.8 X:nodwarf5", (1, 26, 8)),
        ("devel go1.27-abc", ()),
    ],
)
def test_go_versions_compare_as_numbers(text: str, version: tuple[int, ...]) -> None:
    """A development toolchain counts as older than all, so that another one is taken."""
    assert toolchain.parse_version(text) == version


def test_the_least_go_version_is_read_from_the_module() -> None:
    """It is written once, by go itself."""
    assert toolchain.required("module x\n\ngo 1.26.8\n\ntoolchain go1.27.0\n") == (1, 26, 8)
