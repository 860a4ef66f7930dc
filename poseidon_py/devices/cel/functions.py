"""All functions by name, in the order in which their implementations are tried."""

from poseidon_py.devices.cel.library import (
    conversions,
    formats,
    lists,
    networks,
    operators,
    optionals,
    quantities,
    regexes,
    semvers,
    sets,
    strings,
    times,
    urls,
)
from poseidon_py.devices.cel.library.overload import Overload

_LIBRARIES = (
    *(operators, conversions, strings, regexes, lists, sets, optionals, times),
    *(quantities, semvers, networks, urls, formats),
)

FUNCTIONS: dict[str, tuple[Overload, ...]] = {}
for _library in _LIBRARIES:
    for _overload in _library.OVERLOADS:
        _name = _overload.signature.function
        FUNCTIONS[_name] = (*FUNCTIONS.get(_name, ()), _overload)
