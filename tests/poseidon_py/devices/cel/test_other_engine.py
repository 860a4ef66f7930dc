"""Random expressions of a common subset have the results of Google's engine in C++, which shares no code with ours."""

from functools import cache

import pytest
from cel_expr_python import cel
from cel_expr_python.ext import ext_strings
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.devices.cel.selector import SelectedDevice, Value
from tests.effort import examples
from tests.poseidon_py.devices.cel.outcomes import outcome

ATTRIBUTES: dict[str, Value] = {
    "i": 3,
    "n": -7,
    "s": "hello",
    "e": "",
    "b": True,
    "f": False,
    "is": (1, 2, 3),
    "ss": ("a", "hello"),
}
DEVICE = SelectedDevice("d", ATTRIBUTES)
SEEN_BY_THE_OTHER = {
    "driver": "d",
    "attributes": {
        "d": {name: list(value) if isinstance(value, tuple) else value for name, value in ATTRIBUTES.items()}
    },
}


@cache
def environment():
    return cel.NewEnv(variables={"device": cel.Type.DYN}, extensions=[ext_strings.ExtStrings()])


def outcome_of_the_other(expression):
    try:
        compiled = environment().compile(expression)
    except Exception:  # a C++ status of one of several kinds
        return "refused"
    result = compiled.eval(data={"device": SEEN_BY_THE_OTHER})
    if str(result.type()) in ("ERROR", "UNKNOWN"):
        return "error"
    return result.value() if str(result.type()) == "BOOL" else "error"


def attribute(*names):
    return st.sampled_from([f'device.attributes["d"].{name}' for name in names])


def filled(template, **holes):
    return st.fixed_dictionaries(holes).map(lambda values: template.format(**values))


def expressions():
    """Of type bool; some are refused or fail, on purpose."""
    comparisons = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    operators = st.sampled_from(["+", "-", "*", "/", "%"])
    macros = st.sampled_from(["all", "exists", "exists_one"])
    integers = st.one_of(st.sampled_from(["0", "1", "2", "-3", "9223372036854775807"]), attribute("i", "n", "none"))
    texts = st.one_of(st.sampled_from(['""', '"a"', '"hello"', '"l"', '"é"']), attribute("s", "e", "none"))
    lists = st.one_of(st.sampled_from(["[1]", "[1, 2, 3]", "[3, 1]"]), attribute("is"))
    booleans = st.one_of(st.sampled_from(["true", "false"]), attribute("b", "f", "none"))
    for _ in range(2):
        smaller = {"i": integers, "j": integers, "t": texts, "u": texts, "l": lists, "p": booleans, "q": booleans}
        more_integers = st.one_of(
            filled("({i} {o} {j})", o=operators, **smaller),
            filled("size({l})", **smaller),
            filled("{t}.size()", **smaller),
            filled("{l}[{i}]", **smaller),
            filled("({p} ? {i} : {j})", **smaller),
            filled("{t}.indexOf({u})", **smaller),
        )
        more_texts = st.one_of(
            filled("({t} + {u})", **smaller),
            filled("{t}.lowerAscii()", **smaller),
            filled("string({i})", **smaller),
            filled("({p} ? {t} : {u})", **smaller),
            filled("{t}.replace({u}, 'x')", **smaller),
        )
        more_lists = st.one_of(
            filled("({l} + [{i}])", **smaller),
            filled("{l}.map(x, x {o} {i})", o=operators, **smaller),
            filled("{l}.filter(x, x {c} {i})", c=comparisons, **smaller),
            filled("[{i}]", **smaller),  # one: Kubernetes refuses [1, dyn(2)], the other engine does not
        )
        more_booleans = st.one_of(
            filled("({p} && {q})", **smaller),
            filled("({p} || {q})", **smaller),
            filled("!({p})", **smaller),
            filled("({i} {c} {j})", c=comparisons, **smaller),
            filled("({t} {c} {u})", c=comparisons, **smaller),
            filled("({l} == {l2})", l2=lists, **smaller),
            filled("({i} in {l})", **smaller),
            filled("{t}.contains({u})", **smaller),
            filled("{t}.startsWith({u})", **smaller),
            filled("{l}.{m}(x, x {c} {i})", m=macros, c=comparisons, **smaller),
            filled("({p} ? {q} : {p})", **smaller),
            filled("has(device.attributes.d.{n})", n=st.sampled_from(["i", "none"])),
        )
        integers, texts = st.one_of(integers, more_integers), st.one_of(texts, more_texts)
        lists, booleans = st.one_of(lists, more_lists), st.one_of(booleans, more_booleans)
    return booleans


@pytest.mark.slow
@examples(150)
@given(expressions())
def test_results_and_errors_are_those_of_another_engine(expression):
    assert outcome(expression, DEVICE)[0] == outcome_of_the_other(expression)
