"""`poseidon jobs run`: mistakes in its flags, and a server without the kinds."""

import pytest

from poseidon_py.cli.main import cli
from tests.command_line import invoke


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        pytest.param(["--workers", "0"], "0 is not in the range", id="no workers"),
        pytest.param(["--health-port", "70000"], "--health-port is 70000; give a whole number from -1", id="port"),
        pytest.param(["--lease-duration", "5"], "--lease-duration (5) must be more than --renew-deadline", id="lease"),
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


def test_all_problems_of_a_hooks_file_are_named(tmp_path):
    path = tmp_path / "hooks.yaml"
    path.write_text("hooks: [{name: billing, url: ftp://x, on: [{befor: a}]}, {url: http://x}]")
    result = invoke(cli, "jobs", "run", "--hooks", str(path))
    assert result.exit_code == 2
    shown = " ".join(result.output.split())
    for problem in (
        "hooks[0].url: is 'ftp://x'",
        "hooks[0].on[0].befor: is not a known key",
        "hooks[1].name: is missing",
    ):
        assert problem in shown


def test_a_hooks_file_that_does_not_exist_is_named(tmp_path):
    result = invoke(cli, "jobs", "run", "--hooks", str(tmp_path / "no.yaml"))
    assert result.exit_code == 2
    assert "no.yaml" in result.output


@pytest.mark.parametrize(
    ("arguments", "usage"),
    [
        (["--help"], "poseidon jobs [NAME] [OPTIONS] | COMMAND [ARGS]..."),
        (["run", "--help"], "poseidon jobs run [OPTIONS]"),
        (["show", "--help"], "poseidon jobs show [OPTIONS] [NAME]"),
        (["train", "--help"], "poseidon jobs show [OPTIONS] [NAME]"),
        (["-n", "team", "--help"], "poseidon jobs show [OPTIONS] [NAME]"),
    ],
)
def test_what_is_no_command_is_the_name_of_a_job(arguments, usage):
    result = invoke(cli, "jobs", *arguments)
    assert result.exit_code == 0
    assert usage.removeprefix("poseidon ") in " ".join(result.output.split())


def test_a_state_that_jobs_do_not_have_is_refused():
    result = invoke(cli, "jobs", "--state", "Foo")
    assert result.exit_code == 2
    assert "'Foo' is not one of 'pending', 'privileged', 'running'" in result.output


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_both_flags_show_the_help_of_the_group(flag):
    result = invoke(cli, "jobs", flag)
    assert result.exit_code == 0
    assert "Run jobs of batch.volcano.sh" in result.output


@pytest.mark.parametrize("arguments", [[], ["train"], ["-o", "json"]])
def test_without_a_scheduler_the_remedy_is_named(arguments):
    result = invoke(cli, "jobs", *arguments, "--address", "127.0.0.1:9")
    assert result.exit_code == 1
    assert "no scheduler at 127.0.0.1:9" in result.output


def test_the_scheduler_names_all_problems_of_a_hooks_file(tmp_path):
    path = tmp_path / "hooks.yaml"
    path.write_text("hooks: [{name: billing, url: ftp://x, on: [{machine: pod}]}]")
    result = invoke(cli, "run", "--health-port", "-1", "--hooks", str(path))
    assert result.exit_code == 2
    shown = " ".join(result.output.split())
    assert "hooks[0].url: is 'ftp://x'" in shown
    assert "hooks[0].on[0].machine" in shown


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--ended-jobs", "-1"], "ended-jobs is -1; give a whole number of 0 or more"),
        (["--ended-jobs-seconds", "-1"], "ended-jobs-seconds is -1; give a number of seconds of 0 or more"),
    ],
)
def test_wrong_bounds_are_named(flags, message):
    result = invoke(cli, "run", "--health-port", "-1", *flags)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
