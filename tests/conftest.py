"""How hard the property tests try: HYPOTHESIS_PROFILE=thorough for a long look, default otherwise."""

import os

from hypothesis import HealthCheck, settings

_COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

settings.register_profile("default", _COMMON, max_examples=80, stateful_step_count=30, derandomize=True)
settings.register_profile("thorough", _COMMON, max_examples=1000, stateful_step_count=60)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
