"""Random expressions over one device: most compile, and many fail when they are evaluated."""

from hypothesis import strategies as st

DOMAIN = "gpu.example.com"
A = f'device.attributes["{DOMAIN}"]'
C = f'device.capacity["{DOMAIN}"]'

BOOLS = [
    "true", "false", "device.allowMultipleAllocations", f"{A}.mig", f"has({A}.model)",
    f"has({A}.nope)", f'"model" in {A}', '"q" in device.attributes', f"{A}.nope",
    f"{A}.?nope.hasValue()", f"{A}.model",
]  # fmt: skip
INTS = [
    "0",
    "1",
    "3",
    "-2",
    "9223372036854775807",
    f"{A}.idx",
    f"{A}.l[0]",
    f"{A}.l[5]",
    f"{A}.nope",
]
STRINGS = ['""', '"A10G"', '"ä1"', "device.driver", f"{A}.model", f"{A}.tags[0]", f"{A}.nope"]
LISTS = [
    f"{A}.l",
    f"{A}.tags",
    "[1, 2, 3]",
    '["x", "y"]',
    "[]",
    f"{A}.model",
    f'{A}.model.split("1")',
]
QUANTITIES = [f"{C}.memory", f"{C}.half", f"{C}.nope", 'quantity("24Gi")', 'quantity("bad")']
SEMVERS = [f"{A}.version", 'semver("1.10.3")', 'semver("x")', 'semver("v2", true)', f"{A}.idx"]


def _mix(template: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda given: template.format(*given))


def _number(bools: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    base = st.sampled_from(INTS)
    return st.one_of(
        base,
        _mix("({} {} {})", base, st.sampled_from("+-*/%"), base),
        _mix("({} ? {} : {})", bools, base, base),
        _mix("-({})", base),
        _mix("size({})", st.sampled_from(LISTS)),
        _mix("{}.compareTo({})", st.sampled_from(QUANTITIES), st.sampled_from(QUANTITIES)),
        _mix("{}.major()", st.sampled_from(SEMVERS)),
    )


def _text(bools: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    base = st.sampled_from(STRINGS)
    return st.one_of(
        base,
        _mix("({} + {})", base, base),
        _mix("({} ? {} : {})", bools, base, base),
        _mix("{}.lowerAscii()", base),
        _mix('{}.replace("A", "b")', base),
        _mix("{}.?{}.orValue({})", st.just(A), st.sampled_from(["model", "nope"]), base),
        _mix("string({})", st.sampled_from(INTS)),
    )


def _compared(bools: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    numbers, texts, lists = _number(bools), _text(bools), st.sampled_from(LISTS)
    order = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    anything = st.one_of(numbers, texts, bools, lists, st.sampled_from(QUANTITIES + SEMVERS))
    return st.one_of(
        _mix("({} {} {})", numbers, order, numbers),
        _mix("({} {} {})", texts, order, texts),
        _mix("({} == {})", anything, anything),
        _mix("({} != {})", anything, anything),
        _mix("({} in {})", anything, lists),
        _mix("{}.startsWith({})", texts, texts),
        _mix('{}.matches("^A1.G$")', texts),
        _mix("{}.includes({})", anything, anything),
        _mix("sets.contains({}, {})", lists, lists),
        _mix("{}.isGreaterThan({})", st.sampled_from(SEMVERS), st.sampled_from(SEMVERS)),
        _mix("{}.isLessThan({})", st.sampled_from(QUANTITIES), st.sampled_from(QUANTITIES)),
    )


def _extended(bools: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    lists = st.sampled_from(LISTS)
    loop = st.sampled_from(["all", "exists", "exists_one"])
    body = st.one_of(bools, st.sampled_from(["e == 1", "e > 2", 'e == "x"', "e"]))
    return st.one_of(
        _compared(bools),
        _mix("({} && {})", bools, bools),
        _mix("({} || {} || {})", bools, bools, bools),
        _mix("!{}", bools),
        _mix("({} ? {} : {})", bools, bools, bools),
        _mix("{}.{}(e, {})", lists, loop, body),
        _mix("{}.filter(e, {}).size() > 1", lists, body),
        _mix("{}.map(e, {}).size() == 3", lists, body),
        _mix("{}.transformMap(i, e, {}) != {{}}", lists, body),
        _mix("{}.exists(i, e, i == 1 && {})", lists, body),
        _mix("cel.bind(z, {}, z == z && {})", st.sampled_from(BOOLS + INTS + LISTS), bools),
        _mix("{}.?{}.optMap(m, m == {}).orValue({})", st.just(A),
             st.sampled_from(["model", "nope", "idx"]), st.sampled_from(STRINGS), bools),
        _mix('{{"a": {}, ?"b": {}.?nope}}.a', bools, st.just(A)),
    )  # fmt: skip


expressions = st.recursive(st.sampled_from(BOOLS), _extended, max_leaves=6)
