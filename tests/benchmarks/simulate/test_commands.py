"""The commands `trace` and `simulate` from the shell, and the suites quality and scale."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from benchmarks.__main__ import cli
from benchmarks.harness import runner, specs
from benchmarks.harness.results import FORMAT, CaseResult, ResultError, SuiteResult, read
from benchmarks.harness.runner import Options
from benchmarks.loads.churn import ChurnLoad, ChurnSpec
from benchmarks.report import tables
from benchmarks.report.figures import figures
from benchmarks.simulate.baselines import BASELINES, OneByOne
from benchmarks.simulate.running import schedulers
from benchmarks.suites import quality, scale
from benchmarks.traces import files
from firmament_py.model.events import TasksObserved, TasksRemoved
from firmament_py.policy import registry
from tests.benchmarks.traces.made import small
from tests.paths import DOCS


def shell(*arguments):
    """Exit code, output and errors of a command."""
    done = CliRunner().invoke(cli, [str(a) for a in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


# -- trace ----------------------------------------------------------------------------------------------------


def test_making_describing_and_converting(tmp_path):
    made, table = tmp_path / "g", tmp_path / "t.json.gz"
    done = shell("trace", "generate", "--preset", "google2011", "--nodes", 8, "--format", "google-v2", "--gzip", made)
    assert done.exit_code == 0
    assert "8 machines" in done.output
    assert (made / "task_events" / "part-00000-of-00001.csv.gz").is_file()
    assert shell("trace", "convert", made, table).exit_code == 0
    message = [json.loads(shell("trace", "describe", path, "--json").stdout) for path in (made, table)]
    assert {**message[0], "name": ""} == {**message[1], "name": ""}
    assert message[0]["machines"] == 8
    text = shell("trace", "describe", table).output
    assert "machines               8" in text


def test_a_gang_that_the_cut_breaks_is_left_out_and_reported(tmp_path):
    whole, cut = tmp_path / "whole.json", tmp_path / "cut.json"
    gang = [("gang", at, 60, 1, 0) for at in (0, 0, 4000, 4000)]
    files.write(small([*gang, ("one", 1, 60, 1, 0)], gangs={"gang": 4}), whole, "json")
    note = "note: left out: 1 gangs with 2 tasks"
    assert note in shell("trace", "convert", whole, cut, "--hours", 1).stderr
    assert json.loads(shell("trace", "describe", cut, "--json").stdout)["jobs"] == 1
    done = shell("simulate", "--trace", whole, "--hours", 1, "--policy", "first-fit", "--json", tmp_path / "r.json")
    assert (done.exit_code, note in done.stderr) == (0, True)
    [case] = read(tmp_path / "r.json").cases
    assert case.facts["tasks"] == case.facts["placements"] == 1


def example(name):
    """The lines of the example in docs/benchmarks.md that begins with `name`, without their indentation."""
    lines = (DOCS / "benchmarks.md").read_text().splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith(f"    {name}"))
    return [line[4:] for line in lines[begin : lines.index("", begin)]]


def document(folder):
    path = folder / "t.json"
    path.write_text("\n".join(example('{"format"')))
    return path


def folder_of_tables(folder):
    """Each line that is not indented begins with the name of a table."""
    tables: dict[str, list[str]] = {}
    for line in example("machines.csv "):
        if not line.startswith(" "):
            name, line = line.split(maxsplit=1)
            tables[name] = []
        tables[name].append(line.strip())
    for name, its in tables.items():
        (folder / name).write_text("\n".join(its) + "\n")
    return folder


@pytest.mark.parametrize(
    ("make", "figures"),
    [
        (document, {"machines": 10, "tasks": 4, "gangs": 1, "capacity": (320_000, 640 * 2**30, 80)}),
        (folder_of_tables, {"machines": 1, "tasks": 2, "gangs": 1, "capacity": (32_000, 64 * 2**30, 8)}),
    ],
)
def test_the_examples_of_the_documentation_are_traces_that_run(tmp_path, make, figures):
    path, out = make(tmp_path), tmp_path / "r.json"
    done = shell("trace", "describe", path, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    message = json.loads(done.stdout)
    message["capacity"] = tuple(message["capacity"].values())
    assert {key: message[key] for key in figures} == figures
    done = shell("simulate", "--trace", path, "--json", out)
    assert (done.exit_code, done.stderr) == (0, "")
    [case] = read(out).cases
    assert case.facts["placements"] == case.facts["tasks"] == figures["tasks"]


def test_tasks_that_fit_nowhere_are_reported(tmp_path):
    path = tmp_path / "t.json"
    files.write(small([("a", 0, 9, 4, 8), ("huge", 1, 9, 5, 8)]), path, "json")
    note = (
        "note: 1 tasks do not fit on any empty machine of the trace and wait forever, e.g. huge/0 (cpu 5m, memory 8)\n"
    )
    assert shell("trace", "describe", path).stderr == note
    assert shell("simulate", "--trace", path, "--policy", "first-fit").stderr == note


def test_the_presets_are_listed_with_their_sources():
    done = shell("trace", "presets")
    assert "alibaba-gpu: " in done.output
    assert "approximates" in done.output


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["trace", "generate", "--preset", "nix", "x.json"], 1, "unknown preset 'nix'; choose one of: google2011"),
        (["trace", "generate", "--preset", "philly", "x.txt"], 1, "must end in .json or .json.gz"),
        (["trace", "generate", "x.json"], 2, "--preset"),
        (["trace", "describe", "nix"], 1, "nix does not exist"),
        (["trace", "convert", "nix", "x.json"], 1, "nix does not exist"),
        (["simulate"], 2, "give one of --trace PATH and --preset NAME"),
        (["simulate", "--preset", "google2011", "--trace", "x"], 2, "give one of"),
        (["simulate", "--trace", "x", "--nodes", "5"], 2, "use them with --preset, not with --trace"),
        (["simulate", "--trace", "x", "--repeat", "2"], 2, "--repeat needs --preset or --measured"),
        (["simulate", "--trace", "nix"], 2, "nix does not exist"),
        (["simulate", "--preset", "nix"], 2, "unknown preset 'nix'"),
        (["simulate", "--preset", "google2011", "--policy", "nix"], 2, "no policy 'nix'; there are: bin-packing"),
        (["simulate", "--preset", "google2011", "--load", "0"], 2, "--load"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_usage_is_one_clear_line(arguments, code, message):
    done = shell(*arguments)
    assert done.exit_code == code
    assert message in done.output
    assert "Traceback" not in done.output


# -- simulate -------------------------------------------------------------------------------------------------

SMALL = ("simulate", "--preset", "alibaba-gpu", "--nodes", 10, "--hours", 1, "--load", 1.2, "--seed", 3)


def result(path):
    raw = json.loads(path.read_text())
    return {key: value for key, value in raw.items() if key != "environment"}


@pytest.mark.slow
def test_the_result_is_the_same_except_for_the_environment(tmp_path):
    for name in ("a", "b"):
        done = shell(*SMALL, "--labels", "--audit", 5, "--json", tmp_path / f"{name}.json")
        assert done.exit_code == 0, done.output
    assert result(tmp_path / "a.json") == result(tmp_path / "b.json")
    [case] = read(tmp_path / "a.json").cases
    assert case.samples["gap"] == [0.0]
    assert {"link_use_max", "bytes_moved", "interference"} <= set(case.samples)
    assert {line.kind for line in case.series} == {"timeline", "cdf"}
    assert case.checked >= 10
    done = shell("compare", tmp_path / "a.json", tmp_path / "b.json")
    assert done.exit_code == 0


@pytest.mark.slow
def test_two_policies_are_compared_on_the_same_traces(tmp_path):
    tiny = ("simulate", "--preset", "google2011", "--nodes", 5, "--hours", 0.1, "--load", 1.2, "--seed", 7)
    for policy in ("first-fit", "least-allocated"):
        done = shell(*tiny, "--repeat", 6, "--policy", policy, "--json", tmp_path / f"{policy}.json")
        assert done.exit_code == 0, done.output
        [case] = read(tmp_path / f"{policy}.json").cases
        assert case.seeds["utilisation"] == [7, 8, 9, 10, 11, 12]
        assert len(set(case.samples["utilisation"])) > 1
        assert (case.name, case.sizes["policy"]) == (f"google2011/{policy}", policy)
    files = tmp_path / "first-fit.json", tmp_path / "least-allocated.json"
    done = shell("compare", *files, "--policies", "first-fit", "least-allocated", "--metric", "utilisation")
    assert done.exit_code == 0, done.output
    assert " .. " in done.output
    done = shell("compare", *files)
    assert done.exit_code == 2
    assert "--policies X Y" in done.output
    done = shell("compare", files[0], "--policies", "first-fit", "nix")
    assert done.exit_code == 2
    assert "has no case of policy 'nix'; its policies are: first-fit" in done.output
    assert "or one file and --policies" in shell("compare", files[0]).output


@pytest.mark.slow
def test_a_custom_trace_in_a_separate_process(tmp_path):
    trace = {
        "format": "poseidon-trace",
        "version": 1,
        "machines": [{"name": "m", "count": 3, "allocatable": {"cpu": "2", "memory": "4Gi"}}],
        "jobs": [{"name": "j", "tasks": [{"count": 9, "duration_s": 60, "requests": {"cpu": "1"}}]}],
    }
    path, out = tmp_path / "t.json", tmp_path / "r.json"
    path.write_text(json.dumps(trace))
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "simulate",
        "--trace",
        path,
        "--hours",
        "0.1",
        "--grpc",
        "--json",
        out,
    ]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [case] = read(out).cases
    # 6 fit at once, 3 run after them: waits of 0.15 s, and of 60 s and two rounds and binds
    assert case.samples["task_wait_s"] == [pytest.approx((6 * 0.15 + 3 * 60.3) / 9)]
    assert case.samples["completion_s"] == [pytest.approx(120.3)]


def test_measured_rounds_work(tmp_path):
    done = shell(*SMALL[:3], "--nodes", 5, "--hours", 0.1, "--measured", "--facts", "--policy", "first-fit")
    assert done.exit_code == 0, done.output
    assert "rounds" in done.output


def test_a_broken_rule_fails_the_command(monkeypatch):
    # a scheduler that does not count what it has placed
    monkeypatch.setattr(OneByOne, "_allocate", lambda self, task, node: None)
    done = shell("simulate", "--preset", "google2011", "--nodes", 5, "--policy", "first-fit")
    assert done.exit_code == 1
    assert "no machine is over-committed" in done.output


# -- suites ---------------------------------------------------------------------------------------------------


def test_every_policy_and_baseline_has_its_case():
    cases = [case.name for case in specs.load("quality").cases]
    names = [info.name for info in registry.available()]
    for scheduler in (*names, *BASELINES):
        assert f"usual/google2011/{scheduler}" in cases
    assert schedulers() == [*names, *specs.BASELINES]
    assert list(BASELINES) == list(specs.BASELINES)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["over/philly", "labels/google2011", "usual/google2019"])
@pytest.mark.parametrize("scheduler", ["load-spreading", "least-allocated"])
def test_quality_is_sound_at_a_twentieth(name, scheduler):
    [case] = [case for case in specs.load("quality").cases if case.name == f"{name}/{scheduler}"]
    sample = quality.measure(case, Options(scale=0.05))
    assert [check for check in sample.checks if not check.ok] == []
    assert 0 < sample.metrics["utilisation"] <= 1


@pytest.mark.slow
def test_effects_are_one_picture_each_with_a_line_a_policy():
    shown, result = {}, SuiteResult("quality", {}, {}, {})
    for scheduler in ("quincy", "load-spreading", "first-fit"):
        [case] = [case for case in specs.load("quality").cases if case.name == f"effects/500-nodes/{scheduler}"]
        sample = quality.measure(case, Options(scale=0.05))
        assert [check for check in sample.checks if not check.ok] == []
        shown[scheduler] = sample.metrics
        result.cases.append(CaseResult(case.name, dict(case.sizes)))
        result.cases[-1].add(sample)
    drawn = {figure.title.split(",")[0]: figure for figure in figures(result) if figure.kind == "timeline"}
    for effect in ("spread between nodes", "link p99", "bytes moved", "interference", "nodes used"):
        assert [line.label for line in drawn[effect].lines] == ["quincy", "load-spreading", "first-fit"]
        assert {len(line.x) for line in drawn[effect].lines} == {121}
    assert {"spread", "link_use_p99", "link_use_max", "bytes_moved", "interference", "nodes_used"} <= set(
        shown["quincy"]
    )
    assert shown["quincy"]["bytes_moved"] < shown["load-spreading"]["bytes_moved"]
    assert shown["first-fit"]["nodes_used"] < shown["load-spreading"]["nodes_used"]


@pytest.mark.slow
def test_scale_is_sound_and_has_its_curves():
    for case in specs.load("scale").cases:
        sample = scale.measure(case, Options(scale=0.01))
        assert [check for check in sample.checks if not check.ok] == []
        assert sample.metrics["placed"] > 0
        assert {line.name for line in sample.series} == {"round", "solver", "updates"}


def test_exponents_are_slopes():
    assert scale.exponent([1, 10, 100], [2, 20, 200]) == pytest.approx(1)
    assert scale.exponent([1, 10, 100], [3, 3 * 10**1.5, 3 * 10**3]) == pytest.approx(1.5)
    assert scale.exponent([5], [1]) == 0


def test_a_cluster_with_churn_is_sound_and_its_check_finds_violations():
    load, same = (ChurnLoad(ChurnSpec("google2011", 30, seed=2)) for _ in range(2))
    assert (load.used <= load.allocatable).all()
    cpu = load.resources.index("cpu")
    assert load.used[:, cpu].sum() / load.allocatable[:, cpu].sum() == pytest.approx(0.7, abs=0.05)
    running = load.running
    events = load.churn(0.1)
    assert str(events) == str(same.churn(0.1))
    gone, new = events[-2:]
    assert isinstance(gone, TasksRemoved)
    assert isinstance(new, TasksObserved)
    assert len(gone.uid) == len(new.uid) == round(0.1 * running)
    uids = np.r_[new.uid[:1], new.uid[:1]]
    _, wrong = load.bind(uids, ["m00000", "m00000"])
    assert wrong == ["a task is placed twice, or one that is not pending"]
    for _ in range(200):  # far more than fit
        event = load.churn(0.1)[-1]
        assert isinstance(event, TasksObserved)
        _, wrong = load.bind(event.uid, ["m00000"] * len(event.uid))
        if wrong:
            break
    assert "1 nodes are over-committed" in wrong


# -- results --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": 1, "cases": []}', "of format 1, of an older version; this version reads format 3: measure again"),
        ('{"format": 99, "cases": []}', "of format 99, of a newer version"),
        ('{"format": 3, "cases": [{"name": "x", "failed": [], "series": [{}]}]}', "a series has the fields"),
    ],
    ids=["older", "newer", "series"],
)
def test_results_of_another_format_are_refused(tmp_path, text, message):
    assert FORMAT == 3
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(ResultError, match=message):
        read(tmp_path / "r.json")


def test_series_survive_their_file_and_are_those_of_the_last_sample(tmp_path):
    [case] = [c for c in specs.load("scale").cases if c.name.startswith("churn/google2011/1000")]
    suite = specs.load("scale")
    small = specs.Case("tiny", {**case.sizes, "nodes": [5], "rounds": 1})
    found = runner.run(suite, [small], Options(), 2)
    found.write(tmp_path / "r.json")
    assert read(tmp_path / "r.json") == found
    assert len(found.cases[0].series) == 3


def test_figures_that_do_not_fit_a_table_are_a_list():
    case = CaseResult("usual/google2011/load-spreading", {}, {m.name: [0.5] for m in specs.load("quality").metrics})
    where = {"cpu": "c", "cores": 1, "python": "3", "load_average": [0.0]}
    found = SuiteResult("quality", where, {"repeat": 1}, {}, [case])
    shown = {}
    for width in (80, 300):
        console = Console(width=width, record=True, file=io.StringIO())
        tables.show(console, specs.load("quality"), found)
        shown[width] = console.export_text()
    assert "┃" not in shown[80]
    assert "┃" in shown[300]
    for text in shown.values():
        titles = {word for metric in specs.load("quality").metrics for word in metric.title.split()}
        assert titles <= set(text.replace(":", " ").split())
        assert "usual/google2011/load-spreading" in text
