"""`poseidon jobs run`: mistakes in its flags, and a server without the kinds."""

import pytest

from poseidon_py.cli.main import cli
from tests.command_line import invoke


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        pytest.param(["--workers", "0"], "0 is not in the range", id="no workers"),
        pytest.param(["--health-port", "70000"], "--health-port is 70000; give a whole number from -1", id="port"),
        pytest.param(["--lease-duration", "5"], "lease-duration (5) must be more than renew-deadline", id="lease"),
        pytest.param(["--policy", "trivial"], "No such option", id="a flag of the scheduler"),
        pytest.param(["--kubeconfig", "/no/such"], "there is no kubeconfig /no/such", id="no kubeconfig"),
    ],
)
def test_wrong_flags_are_named(flags, message):
    result = invoke(cli, "jobs", "run", "--health-port", "-1", *flags)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_the_help_has_its_own_defaults():
    shown = " ".join(invoke(cli, "jobs", "run", "--help").output.split())
    assert "[default: poseidon-jobs]" in shown
    assert "[default: 10272]" in shown
