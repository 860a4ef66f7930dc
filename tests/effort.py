"""How hard tests try. HYPOTHESIS_PROFILE=thorough: twelve times the examples of every property or more, and every seed;
else the usual number of examples, and every fourth seed. SEEDS_QUARTER (0 .. 3) says which examples and which seeds; CI
takes the quarters in turn.
"""

import os
from typing import Any

import pytest
from hypothesis import settings

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
QUARTER = int(os.environ.get("SEEDS_QUARTER", "0")) % 4

NO_SERVER = "no real API server: "
"""How the reason begins for which a case is skipped that needs one; conftest.py counts them."""

NO_HELM = "no Helm: "
"""Likewise for a case that needs Helm or kubectl, which are downloaded."""

_FACTOR = 12
_ALWAYS = 4
"""So few seeds all run every time."""


def examples(usual: int, *, steps: int | None = None, thorough: int = 0, **fields: Any) -> settings:
    """Hypothesis settings with so many examples, and steps of a state machine, in the default profile. `thorough`: the
    examples of the thorough one, if more than twelve times as many."""
    if steps is not None:
        fields["stateful_step_count"] = 2 * steps if THOROUGH else steps
    return settings(max_examples=max(_FACTOR * usual, thorough) if THOROUGH else usual, **fields)


def seeds(*bounds: int) -> pytest.MarkDecorator:
    """Parametrises `seed` with range(*bounds), or a quarter of it."""
    every = range(*bounds)
    chosen = every if THOROUGH or len(every) <= _ALWAYS else every[QUARTER::4]
    return pytest.mark.parametrize("seed", chosen)
