"""All commands end alike when they are interrupted: exit code 130, as shells have it, and nothing else is printed."""

import subprocess
import sys
from types import ModuleType

import click
import pytest

from benchmarks.__main__ import cli as bench
from firmament_py.__main__ import main as firmament_main
from firmament_py.cli.main import cli as firmament
from poseidon_py.__main__ import main as poseidon_main
from poseidon_py.cli.bench import main as bench_main
from poseidon_py.cli.main import cli as poseidon
from tests.command_line import invoke

COMMANDS = {"poseidon": (poseidon, "policies"), "firmament": (firmament, "policies"), "poseidon-bench": (bench, "list")}
MODULES = {"poseidon": "poseidon_py", "firmament": "firmament_py", "poseidon-bench": "poseidon_py.cli.bench"}
MAINS = {
    "poseidon": (poseidon_main, "poseidon_py.cli.main"),
    "firmament": (firmament_main, "firmament_py.cli.main"),
    "poseidon-bench": (bench_main, "benchmarks.__main__"),
}


def _raises(error):
    def command(*_args, **_kwargs):
        raise error

    return command


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("error", [KeyboardInterrupt(), EOFError(), click.Abort()], ids=["interrupt", "end", "abort"])
def test_a_command_that_is_interrupted_exits_with_130(monkeypatch, name, error):
    group, command = COMMANDS[name]
    found = group.get_command(click.Context(group), command)
    monkeypatch.setattr(found, "callback", _raises(error))
    result = invoke(group, command)
    assert (result.exit_code, result.output) == (130, "")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_question_without_an_answer_exits_with_130(monkeypatch, name):
    group, command = COMMANDS[name]
    found = group.get_command(click.Context(group), command)
    monkeypatch.setattr(found, "callback", lambda *_args, **_kwargs: click.confirm("Do it?"))
    result = invoke(group, command)
    assert (result.exit_code, result.output.strip()) == (130, "Do it? [y/N]:")


@pytest.mark.parametrize("name", MAINS)
def test_an_interrupt_while_modules_are_loaded_exits_with_130(monkeypatch, name):
    main, module = MAINS[name]
    loading = ModuleType(module)
    loading.__getattr__ = _raises(KeyboardInterrupt())  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, module, loading)
    monkeypatch.setattr("signal.signal", lambda *_: None)  # of the tests' process
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_a_process_that_gets_sigint_exits_with_130_without_a_traceback(name):
    """The signal arrives as the command begins, so that no clock matters."""
    code = (
        "import click, os, runpy, signal, sys\n"
        "click.Group.invoke = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
        f"sys.argv = [{name!r}, 'x']\n"
        f"runpy.run_module({MODULES[name]!r}, run_name='__main__', alter_sys=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
