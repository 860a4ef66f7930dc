"""`kubectl poseidon`, and the completion that it and the shells ask for."""

import sys

import click
import pytest
from click.testing import CliRunner

from poseidon_py.cli.main import LazyGroup, cli
from poseidon_py.cli.shell import kubectl as plugin
from tests.command_line import invoke


def test_the_plugin_has_the_commands_that_ask_a_scheduler():
    asking = {name for name in LazyGroup.modules if name not in ("cluster", "completion", "config", "demo", "hooks")}
    assert set(plugin.kubectl.list_commands(click.Context(plugin.kubectl))) == asking - {"run", "policies"}
    for name, (_, summary) in plugin.KubectlGroup.modules.items():
        command = plugin.kubectl.get_command(click.Context(plugin.kubectl), name)
        assert command is not None
        assert f"{command.get_short_help_str(500)}.".startswith(summary.removesuffix(".")), name
    assert not isinstance(plugin.kubectl.get_command(click.Context(plugin.kubectl), "jobs"), click.Group)


def test_its_name_is_that_of_kubectl():
    """What users type, not the name of the program that kubectl starts."""
    usage = CliRunner().invoke(plugin.kubectl, ["jobs", "--help"], prog_name=plugin.NAME).output.splitlines()[0]
    assert usage == "Usage: kubectl poseidon jobs [OPTIONS] [NAME]"
    result = CliRunner().invoke(plugin.kubectl, ["stats"], prog_name=plugin.NAME)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == "Error: there is no command 'stats'; did you mean status?"


@pytest.mark.parametrize(
    "command", ["explain", "gangs", "jobs", "queues", "rebalance", "status", "fits", "what-if", "network"]
)
def test_flags_are_kubectls(command):
    options = CliRunner().invoke(plugin.kubectl, [command, "--help"]).output
    assert "--context NAME" in options
    assert "--kubeconfig FILE" in options
    if command not in ("status", "queues", "rebalance", "network"):
        assert "-n, --namespace NAME" in options


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["sta"], ["status\tShow the scheduler's view of the cluster.", ":4"]),
        (["status", "--cont"], ["--context\tContext of the kubeconfig. Default: its current context.", ":4"]),
        (["status", "--context", ""], ["prod", "test", ":4"]),
        (["status", "--kubeconfig", ""], [":0"]),
    ],
)
def test_kubectl_completes_its_arguments(monkeypatch, capsys, tmp_path, words, lines):
    """In the lines of cobra: values with descriptions, and whether the shell completes file names."""
    (tmp_path / "kubeconfig").write_text("contexts: [{name: test, context: {}}, {name: prod, context: {}}]")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-poseidon", *words])
    monkeypatch.setattr("os._exit", lambda code: None)
    plugin.complete()
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize(
    ("shell", "calls"),
    [
        ("bash", "_POSEIDON_COMPLETE=bash_complete $1"),
        ("zsh", "_POSEIDON_COMPLETE=zsh_complete poseidon"),
        ("fish", "_POSEIDON_COMPLETE=fish_complete"),
    ],
)
def test_completion_scripts(shell, calls):
    result = CliRunner().invoke(cli, ["completion", shell], prog_name="poseidon")
    assert result.exit_code == 0
    assert calls in result.stdout
    assert "poseidon" in result.stdout
    refused = invoke(cli, "completion", "tcsh")
    assert refused.exit_code == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in refused.stderr
