"""The language, by tables: an expression and what it gives."""

import pytest

from driver.selector.device import SelectorDevice
from driver.selector.errors import CompileError, EvaluationError
from driver.selector.program import compile_selector

A = 'device.attributes["gpu.example.com"]'
C = 'device.capacity["gpu.example.com"]'

TRUE = [
    # everyday selectors
    'device.driver == "gpu.example.com"',
    f'{A}.model == "A10G" && {C}.memory.compareTo(quantity("16Gi")) >= 0',
    f'{A}.model in ["A10G", "A100"]',
    f'{A}.version.isGreaterThan(semver("1.9.0"))',
    f'"x" in {A}.tags',
    f"has({A}.model) && !has({A}.nope)",
    'device.attributes["resource.kubernetes.io"].pcieRoot.startsWith("pci0000")',
    f'cel.bind(a, {A}, a.model.matches("^A1.*$") && a.idx < 4)',
    f"{A}.?nope.orValue(7) == 7",
    f"{A}.model.orValue('x') == 'A10G'",
    'device.attributes["nope"].?x.orValue("none") == "none"',
    f"{A}.l.map(x, x * x).sum() == 14",
    f"!device.allowMultipleAllocations && {A}.mig == false",
    f'{A}.model != "A100" && {A}.model != 1 && {A}.version != "1.10.3"',
    # a domain that is not there reads as an empty one, and is not listed
    "has(device.attributes.nope) && device.attributes.?nope.hasValue()",
    "device.attributes['nope'] == {} && device.capacity.nope.size() == 0",
    "device.attributes.map(d, d).sort()[0] == 'gpu.example.com'",
    "cel.bind(x, device.attributes, x['nope'].size() == 0 && !('nope' in x))",
    # logic absorbs errors, whichever side they are on
    f"{A}.nope || true",
    f"true || {A}.nope",
    f"!({A}.nope && false)",
    "[1, 0, 2].exists(x, 1 / x == 1)",
    "[0, 2, 1].exists(x, 1 / x == 1)",
    "![1, 0].all(x, 1 / x == 2)",
    # numbers
    "7 / 2 == 3 && -7 / 2 == -3 && -7 % 2 == -1 && 7 % -2 == 1",
    "1.0 < 2 && 2u > 1 && dyn(1) == 1.0 && dyn(1u) == 1",
    "1.0 / 0.0 > 9e300 && -1.0 / 0.0 < 0.0",
    "0x10 == 16 && 1e3 == 1000.0 && .5 == 0.5 && 0xFFu == 255u",
    "-9223372036854775808 < 0 && int(-1.9) == -1 && uint(3.7) == 3u",
    "int('-17') == -17 && double('1e-2') == 0.01 && bool('TRUE')",
    "string(1e6) == '1e+06' && string(123456.5) == '123456.5' && string(0.0001) == '0.0001'",
    "string(-0.00001) == '-1e-05' && string(1.0/0.0) == '+Inf' && string(100000.0) == '100000'",
    # text counts code points
    "'äöü'.size() == 3 && 'äöü'.substring(1, 2) == 'ö' && 'äöü'.indexOf('ü') == 2",
    "'a,b,c'.split(',', 2) == ['a', 'b,c']",
    "'ab'.split('') == ['a', 'b'] && 'x'.split(',', 0) == []",
    "'abcabc'.lastIndexOf('b') == 4 && 'abc'.lastIndexOf('c', 1) == -1 && ''.indexOf('a') == -1",
    "'ÄB'.lowerAscii() == 'Äb' && ' \\t x\\u00a0'.trim() == 'x'",
    "'aaa'.replace('a', 'b', 2) == 'bba'",
    "b'\\xff'.size() == 1 && bytes('ä').size() == 2 && string(b'abc') == 'abc'",
    "strings.quote('a\\n') == '\"a\\\\n\"' && r'\\d' == '\\\\d' && '''a'b''' == \"a'b\"",
    "'%s %d %.2f %x %X %o %b%%'.format(['a', 1, 1.5, 255, 'z', 8, 5]) == 'a 1 1.50 ff 7A 10 101%'",
    "'%s'.format([['a', 1, 1.5, null, {'k': true}]]) == '[\"a\", 1, 1.500000, null, {\"k\":true}]'",
    # lists, maps, sets
    "[1, 2] + [3] == [1, 2, 3] && [3, 1, 2].sort() == [1, 2, 3] && [1, 2, 1].distinct() == [1, 2]",
    "['b', 'a'].sortBy(x, x) == ['a', 'b'] && [[1], [2, 3]].flatten() == [1, 2, 3]",
    "[1, 2, 3].slice(1, 3) == [2, 3] && lists.range(3) == [0, 1, 2] && [1, 2].reverse() == [2, 1]",
    "[1, 2].first().value() == 1 && ![].last().hasValue()",
    "[2, 1].min() == 1 && [1, 2].isSorted()",
    "[dyn('a'), dyn(1)].min() == 'a' && [dyn(2), dyn('a')].isSorted()",
    "{'a': 1}.a == 1 && {'a': 1}['a'] == 1 && 'a' in {'a': 1} && {1: 'x'}[dyn(1u)] == 'x'",
    "{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v * 2) == {'b': 4}",
    "['a', 'b'].transformMapEntry(i, v, {v: i}) == {'a': 0, 'b': 1}",
    "sets.equivalent([1, 2], [2, 1, 2]) && sets.intersects([1], [1, 2]) && sets.contains([1], [])",
    "[?optional.none(), ?optional.of(1)] == [1] && {?'a': optional.none()} == {}",
    "optional.of(1).optMap(x, x + 1).value() == 2",
    "optional.none().or(optional.of(3)).value() == 3",
    "optional.of({'a': {'b': 1}}).?a.?b.value() == 1 && optional.of([1])[?0].value() == 1",
    "cel.bind(x, 1 / 0, true)",
    # presence in what has no fields
    f"!has({A}.model.x) && !{A}.model.?x.hasValue()",
    # time
    "duration('1h30m') == duration('90m') && duration('1.5s').getMilliseconds() == 1500",
    "timestamp('2024-02-29T12:00:00+02:00').getHours() == 10",
    "timestamp('2024-02-29T23:30:00Z').getDayOfMonth('+01:00') == 0",
    "timestamp(0) + duration('24h') == timestamp('1970-01-02T00:00:00Z')",
    "string(timestamp('2024-01-01T00:00:00.5Z')) == '2024-01-01T00:00:00.5Z'",
    "string(duration('-1500ms')) == '-1.5s'",
    "timestamp('2024-01-07T00:00:00Z').getDayOfWeek() == 0",
    # Kubernetes' types
    "quantity('1Gi') == quantity('1024Mi')",
    "quantity('1k').add(1).compareTo(quantity('1001')) == 0",
    "quantity('2Ti').isInteger() && !quantity('100Ti').isInteger() && sign(quantity('-1')) == -1",
    "semver('1.0.0-alpha.1').isLessThan(semver('1.0.0-alpha.beta'))",
    "semver('1.0.0-rc.1').isLessThan(semver('1.0.0')) && semver('v1.2', true).minor() == 2",
    "url('https://u@[::1]:8080/a%20b?x=1&x=2#f').getHostname() == '::1'",
    "url('https://e.com/?k=a+b').getQuery() == {'k': ['a b']} && !isURL('a b') && isURL('/a b')",
    "ip('fe80::1').isLinkLocalUnicast() && cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
    "!isIP('1.2.3.04') && !isIP('::ffff:1.2.3.4') && !isCIDR('10.0.0.0/08')",
    "format.dns1123Label().validate('-a').value().size() > 0",
    "!format.qualifiedName().validate('example.com/Name').hasValue()",
    "'gpu-10x7'.findAll('[0-9]+') == ['10', '7'] && 'abc'.find('x') == ''",
    "type(1) == int && type(1.0) != int && type(type(1)) == type && type({}) == map",
]
FALSE = [
    f'{A}.model != "A10G"',
    'has(device.attributes["nope"].x)',
    f"{A}.model == 1",
    '"nope" in device.attributes',
    f"{A}.idx == {A}.model",
    "dyn(true) == 1",
    "dyn(1) == true",
    "true in [dyn(1)]",
    "dyn(0.0 / 0.0) == dyn(0.0 / 0.0)",
    "{1: 'a'} == {dyn(true): 'a'}",
    "dyn(1) in {true: 'x'}",
    "[1, 1, 2].exists_one(x, x == 1)",
    f"{A}.nope in []",
]
RUN_TIME_ERRORS = {
    f"{A}.nope": "no such key: nope",
    f"{A}.model > 1": "no such overload",
    f"{A}.model": "CEL result of type string could not be converted to bool",
    f"{A}.l": "CEL result of type list could not be converted to bool",
    f"{A}.nope || false": "no such key: nope",
    f"{A}.tags[5] == 'x'": "index out of bounds: 5",
    "1 / 0 == 1": "division by zero",
    "1 % 0 == 1": "modulus by zero",
    f"9223372036854775807 + {A}.idx > 0": "integer overflow",
    "-9223372036854775808 - 1 < 0": "integer overflow",
    "-9223372036854775808 / -1 > 0": "integer overflow",
    "9223372036854775807 * 2 > 0": "integer overflow",
    "0u - 1u == 0u": "unsigned integer overflow",
    "18446744073709551615u + 1u == 0u": "unsigned integer overflow",
    f"int(double({A}.idx) * 1e19) > 0": "integer overflow",
    "quantity('16GiB').isInteger()": "quantities must match",
    "optional.none().value() == 1": "optional.none() dereference",
    f"{A}.version == '1.10.3'": "no such overload",
    f"{A}.version in ['a', 'b'] || true": "unhashable",
    "quantity('2') == quantity('1').add(1)": "no such overload",
    "'abc'.charAt(4) == ''": "index out of range: 4",
    "[1, 2].slice(0, 5) == []": "cannot slice(0, 5), list is length 2",
    "[1, 2].transformMapEntry(i, v, {'a': v}) == {}": "key a already exists",
    "[].min() == 1": "min called on empty list",
    "[dyn(2), dyn('a')].sort() == []": "list elements must have the same type",
    "[dyn(1), dyn([])].max() == 1": "no such overload",
    "lists.range(-1).size() == 0": "size must be non-negative",
    f"{A}.model ? true : false": "no such overload",
}
COMPILE_ERRORS = {
    "": "unexpected '<EOF>'",
    "true &&": "unexpected '<EOF>'",
    "true;": "token recognition error",
    "'unclosed": "token recognition error",
    "'\\q' == ''": "invalid escape",
    "1 == 1.0": "no matching overload for '_==_' applied to '(int, double)'",
    "device.driver": "must evaluate to bool or the unknown type, not string",
    "device.foo == 1": "undefined field 'foo'",
    "dev.driver == ''": "undeclared reference to 'dev'",
    "math.greatest(1, 2) == 2": "undeclared reference to 'math'",
    f"{A}.model.nosuch()": "undeclared reference to 'nosuch'",
    f"{C}.memory > 1": "no matching overload for '_>_'",
    f"{C}.memory.isGreaterThan(semver('1.0.0'))": "no matching overload for 'isGreaterThan'",
    "[1, 'a'].size() == 2": "all elements of one literal must have the same type",
    "{'a': 1, 'b': 'c'}.size() == 2": "all values of one literal must have the same type",
    f"device.driver in [{A}.model, 'x']": "all elements of one literal must have the same type",
    "int('0x10') == 16": "cannot convert string '0x10' to int",
    "false && duration('bad') > duration('1s')": "invalid duration 'bad'",
    "'a'.matches('[')": "error parsing regexp",
    "'a'.matches('(?=x)')": "error parsing regexp",
    "'a'.matches('\\\\C')": "error parsing regexp",
    "has(device)": "expected a field selection",
    "[1].all(1, true)": "argument must be a simple name",
    "9223372036854775808 > 0": "beyond 64 bits",
    "18446744073709551616u > 0u": "beyond 64 bits",
    "if == 1": "reserved identifier: if",
    f"{A}.?in.orValue(true)": "unexpected 'in'",
    "null == 1": "no matching overload",
    "1.all(x, true)": "cannot be range of a comprehension",
    "'%d'.format(['a']) == ''": "%d cannot be used on string",
    "'%s %s'.format(['a']) == ''": "index 1 out of range",
    "'%s'.format(['a', 'b']) == ''": "too many arguments",
    "optional.of(1).foo == 1": "does not support field selection",
}


@pytest.mark.parametrize("expression", TRUE)
def test_selects(gpu: SelectorDevice, expression: str) -> None:
    """The expression holds for the GPU."""
    assert compile_selector(expression).matches(gpu) is True


@pytest.mark.parametrize("expression", FALSE)
def test_does_not_select(gpu: SelectorDevice, expression: str) -> None:
    """The expression is false: Python's own idea of equality would often say otherwise."""
    assert compile_selector(expression).matches(gpu) is False


@pytest.mark.parametrize(("expression", "reason"), RUN_TIME_ERRORS.items())
def test_fails_on_the_device(gpu: SelectorDevice, expression: str, reason: str) -> None:
    """The expression compiles, and its evaluation fails with cel-go's reason."""
    program = compile_selector(expression)
    with pytest.raises(EvaluationError) as failure:
        program.matches(gpu)
    assert reason in str(failure.value)


@pytest.mark.parametrize(("expression", "reason"), COMPILE_ERRORS.items())
def test_does_not_compile(expression: str, reason: str) -> None:
    """The expression is refused, and the reason says what is wrong with it."""
    with pytest.raises(CompileError) as failure:
        compile_selector(expression)
    assert reason in str(failure.value)


def test_a_syntax_error_names_line_and_column() -> None:
    """A person finds the place from the message."""
    with pytest.raises(CompileError, match=r"ERROR: <input>:2:4: Syntax error"):
        compile_selector("true\n&& ) ")
