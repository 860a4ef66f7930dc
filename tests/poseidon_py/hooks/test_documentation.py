"""The examples of docs/hooks.md work as they are printed."""

import re
import time

import pytest

from poseidon_py.hooks.config.hook_config import MACHINES, Hook
from poseidon_py.hooks.config.loading import load_hooks
from poseidon_py.hooks.metrics import HookMetrics
from poseidon_py.hooks.sending.signature import sign
from tests.paths import ROOT

TEXT = (ROOT / "docs" / "hooks.md").read_text()
KEY = b"0123456789abcdef0123456789abcdef"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("text", blocks("yaml"))
def test_configurations(tmp_path, text):
    (tmp_path / "billing.key").write_bytes(KEY)
    (tmp_path / "hooks.yaml").write_text(text)
    assert load_hooks(tmp_path / "hooks.yaml", {"BILLING_TOKEN": "Bearer x"}).hooks


def test_defaults():
    hook = Hook("", "")
    retry = hook.retry
    assert (retry.attempts, retry.first, retry.longest) == (20, 1, 600)
    assert (hook.timeout, hook.concurrency, hook.max_pending, hook.max_dead) == (10, 8, 10_000, 1000)
    delays = [min(retry.longest, retry.first * 2**number) for number in range(retry.attempts - 1)]
    # jitter takes up to half of each
    assert 3600 / 1.3 < sum(delays) / 2 < sum(delays) < 2 * 3600
    assert all(f"`{machine}`" in TEXT for machine in MACHINES)


def test_verification_by_a_receiver():
    code: dict = {}
    exec(next(block for block in blocks("python") if "def is_genuine" in block), code)
    now = int(time.time())
    assert code["is_genuine"](sign([b"x" * 32, KEY], now, b"body"), b"body", KEY)
    assert not code["is_genuine"](sign([KEY], now, b"body"), b"body ", KEY)
    assert not code["is_genuine"](sign([KEY], now - 400, b"body"), b"body", KEY)
    assert not code["is_genuine"]("", b"body", KEY)


def test_metrics():
    named = set(re.findall(r"`(poseidon_hook_\w+)", TEXT))
    found = {family.name for family in HookMetrics().registry.collect()}
    assert {name.removesuffix("_total") for name in named} == found
