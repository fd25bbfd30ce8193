"""The DeviceClasses: the chart's are those of deviceclasses/, and each has the devices it says."""

from collections.abc import Iterator

import pytest
import yaml

from driver.model.names import DRIVER
from driver.model.resourceslice import Device, DeviceAttribute
from driver.node.sharing.offered import offered
from driver.node.sharing.partitions import MigMode
from driver.node.simulated import cards, models
from driver.selector.device import SelectorDevice
from driver.selector.program import compile_selector
from tests.helm.chart import ROOT, Chart, Object, find

FOLDER = ROOT / "deviceclasses"
ALL = sorted(file.stem for file in FOLDER.glob("*.yaml"))

# The models (of the simulated cards) that each class of deviceclasses/models.yaml stands for.
MODELS = {
    "t4": {"T4"},
    "a10g": {"A10G"},
    "a100": {"A100-SXM4-40GB", "A100-SXM4-80GB"},
    "a100-sxm4-40gb": {"A100-SXM4-40GB"},
    "a100-sxm4-80gb": {"A100-SXM4-80GB"},
    "l40s": {"L40S"},
    "h100": {"H100-SXM"},
    "h200": {"H200"},
    "b200": {"B200"},
}
# Product names, as NVML spells them, of cards that there are no profiles for.
PRODUCTS = {
    "NVIDIA A100 80GB PCIe": {"a100"},
    "NVIDIA A10": set(),
    "NVIDIA A100X": set(),
    "NVIDIA L40": set(),
    "NVIDIA L4": set(),
    "NVIDIA H100 PCIe": {"h100"},
    "NVIDIA H100 NVL": {"h100"},
    "NVIDIA GH200 480GB": set(),
    "NVIDIA H200 NVL": {"h200"},
    "NVIDIA GB200": set(),
    "NVIDIA T400 4GB": set(),
    None: set(),
}


def classes(name: str) -> dict[str, Object]:
    """The specs in a file of deviceclasses/, by the classes' names."""
    found = yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text())
    return {one["metadata"]["name"]: one["spec"] for one in found}


def selects(spec: Object, device: Device) -> bool:
    """Whether all selectors of a class take the device."""
    seen = SelectorDevice.of(DRIVER, device)
    expressions = [one["cel"]["expression"] for one in spec["selectors"]]
    return all(compile_selector(one).matches(seen) for one in expressions)


def devices(
    model: str, mig: MigMode = MigMode.OFF, *, shareable: bool = True
) -> tuple[Device, ...]:
    """What a machine with two cards of this model publishes."""
    offer = offered(cards(f"2x{model}", "n1"), mig=mig, shareable=shareable)
    return offer.devices(counters=True)


def kinds() -> Iterator[tuple[str, Device]]:
    """Devices of every kind that there is of each model, with their type."""
    for model in models():
        for device in devices(model, MigMode.DYNAMIC):
            yield str(device.attributes["type"].string), device


@pytest.mark.parametrize("name", ["gpu", "shared", "mps", "time-slicing", "mig"])
def test_cards_and_parts_are_kept_apart(name: str) -> None:
    """A class has all cards and no part of one, or the other way around."""
    (spec,) = classes(name).values()
    wanted = "mig" if name == "mig" else "gpu"
    found = list(kinds())
    assert {kind for kind, _ in found} == {"gpu", "mig"}
    for kind, device in found:
        assert selects(spec, device) == (kind == wanted)


def test_shared_cards_only() -> None:
    """A card that one claim has for itself is no share's."""
    (spec,) = classes("shared").values()
    for model in models():
        assert all(selects(spec, one) for one in devices(model))
        assert not any(selects(spec, one) for one in devices(model, shareable=False))


def test_models_are_told_apart() -> None:
    """Each class has the cards of its models and no others; parts of cards are in none."""
    named = {f"{name}.{DRIVER}": wanted for name, wanted in MODELS.items()}
    specs = classes("models")
    assert set(specs) == set(named)
    assert set().union(*MODELS.values()) == set(models())
    for model in models():
        for device in devices(model, MigMode.DYNAMIC):
            taken = {name for name, spec in specs.items() if selects(spec, device)}
            whole = device.attributes["type"].string == "gpu"
            assert taken == {name for name, wanted in named.items() if whole and model in wanted}


@pytest.mark.parametrize("product", PRODUCTS)
def test_other_models_are_not_taken_for_one(product: str | None) -> None:
    """A10 is no A100, GH200 no H200; a card without a product name is in no class, and no error."""
    (device, *_) = devices("T4")
    attributes = {key: value for key, value in device.attributes.items() if key != "productName"}
    if product is not None:
        attributes["productName"] = DeviceAttribute(string=product)
    seen = Device(name="gpu-0", attributes=attributes)
    taken = {name for name, spec in classes("models").items() if selects(spec, seen)}
    assert taken == {f"{name}.{DRIVER}" for name in PRODUCTS[product]}


def test_profiles_are_told_apart() -> None:
    """Each class has the parts of its profile, of every model, and no card."""
    specs = classes("mig-profiles")
    found = dict.fromkeys(specs, 0)
    for kind, device in kinds():
        taken = {name for name, spec in specs.items() if selects(spec, device)}
        profile = device.attributes["profile"].string if kind == "mig" else None
        name = f"{str(profile).replace('+', '.')}.mig.{DRIVER}"
        assert taken == {name} & set(specs)
        for one in taken:
            found[one] += 1
    assert all(found.values())


# Values that make each file's classes.
VALUES: dict[str, Object] = {
    "gpu": {},
    "shared": {},
    "mig": {"node": {"settings": {"mig": "static"}}},
    "mps": {"node": {"mps": {"enabled": True}}},
    "time-slicing": {"node": {"timeSlicing": True}},
    "models": {
        "deviceClass": {
            "models": [
                *("T4", "A10G", "A100", "A100-SXM4-40GB", "A100-SXM4-80GB"),
                *("L40S", "H100", "H200", "B200"),
            ]
        }
    },
    "mig-profiles": {
        "node": {"settings": {"mig": "dynamic"}},
        "deviceClass": {
            "migProfiles": [
                *("1g.5gb", "1g.10gb", "1g.10gb+me", "2g.10gb", "2g.20gb"),
                *("3g.20gb", "3g.40gb", "4g.40gb"),
            ]
        },
    },
}
ALWAYS = {DRIVER, f"shared.{DRIVER}"}


def rendered(chart: Chart, values: Object, kubernetes: str = "1.37.0") -> dict[str, Object]:
    """The chart's classes for these values: their specs by name."""
    objects = chart.render(values, kubernetes=kubernetes)
    return {o["metadata"]["name"]: o["spec"] for o in objects if o["kind"] == "DeviceClass"}


@pytest.mark.cluster
@pytest.mark.parametrize("name", ALL)
def test_classes_are_those_of_deviceclasses(chart: Chart, name: str) -> None:
    """Who installs by hand gets the same; each comes with what it needs, and not before."""
    made = rendered(chart, VALUES[name])
    wanted = classes(name)
    assert {key: made[key] for key in wanted} == wanted
    besides = {f"mig.{DRIVER}"} if name == "mig-profiles" else set()
    assert set(made) == set(wanted) | ALWAYS | besides


@pytest.mark.cluster
def test_the_class_for_an_extended_resource_is_that_of_the_example(chart: Chart) -> None:
    """Only the class that is named like the driver answers for the resource."""
    made = rendered(chart, {"deviceClass": {"extendedResourceName": "nvidia.com/gpu"}})
    file = ROOT / "examples" / "extended-resource" / "deviceclass.yaml"
    assert made.pop(DRIVER) == yaml.safe_load(file.read_text())["spec"]
    assert all("extendedResourceName" not in spec for spec in made.values())


@pytest.mark.cluster
def test_no_class_for_shares_where_there_are_none(chart: Chart) -> None:
    """On API servers that do not know the field, and where cards are not shared."""
    for kubernetes in ("1.34.0", "1.35.2"):
        assert set(rendered(chart, {}, kubernetes)) == {DRIVER}
    assert set(rendered(chart, {}, "1.36.0-rc.0")) == ALWAYS
    assert set(rendered(chart, {"node": {"settings": {"shareable": False}}})) == {DRIVER}


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"deviceClass": {"models": ["H100", "h100"]}}, f"two DeviceClasses h100.{DRIVER}"),
        (
            {"deviceClass": {"models": ["Shared"]}},
            f"two DeviceClasses shared.{DRIVER}",
        ),
        ({"deviceClass": {"migProfiles": ["1g.10gb"]}}, "while node.settings.mig is off"),
        ({"deviceClass": {"models": ["H100.*"]}}, "/deviceClass/models/0"),
        ({"deviceClass": {"models": ["-H100"]}}, "/deviceClass/models/0"),
        ({"deviceClass": {"migProfiles": ["10gb"]}}, "/deviceClass/migProfiles/0"),
    ],
)
def test_classes_that_cannot_be(chart: Chart, values: Object, says: str) -> None:
    """Names that mean two things or nothing are refused before anything is installed."""
    assert says in chart.refused(values)


@pytest.mark.cluster
def test_no_class_at_all(chart: Chart) -> None:
    """Who brings all classes along says so."""
    assert not rendered(chart, {"deviceClass": {"create": False, "models": ["H100"]}})


@pytest.mark.cluster
def test_another_driver_has_classes_of_its_own(chart: Chart) -> None:
    """Name and attributes' domain are the driver's."""
    values = {"driver": "gpu.example.com", "deviceClass": {"models": ["H100"]}}
    objects = chart.render(values)
    made = find(objects, "DeviceClass", "h100.gpu.example.com")["spec"]
    mine = classes("models")[f"h100.{DRIVER}"]
    assert yaml.safe_dump(made) == yaml.safe_dump(mine).replace(DRIVER, "gpu.example.com")
