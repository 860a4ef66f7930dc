"""The runner and the command line, on fake suites, and every real suite at a small scale."""

import json
import signal
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import cli
from benchmarks.harness import runner, specs
from benchmarks.harness.results import Check, ResultError, Sample, read
from benchmarks.harness.runner import CannotMeasureError, Options
from benchmarks.live.processes import child, wait_for_file
from benchmarks.live.session import Pods
from benchmarks.report.comparison import differences
from benchmarks.suites import gangs as gangs_suite
from benchmarks.suites import round as round_suite

SUITE = specs.parse(
    "demo",
    {
        "title": "t",
        "about": "a",
        "metrics": {"x_s": {"title": "x"}},
        "cases": [
            {"name": "one", "sizes": {"n": 1}, "target": {"metric": "x_s", "at_most": 2.0}, "labels": ["short"]},
            {"name": "two", "sizes": {"n": 2}},
        ],
    },
)


def run(values, ok=True, scale=1.0):
    """The first case, measured once for each of `values`."""
    left = iter(values)

    def measure(case, options):
        return Sample({"x_s": next(left)}, {"n": case.sizes["n"]}, [Check("sound", ok, "no")])

    return runner.run(SUITE, SUITE.cases[:1], Options(scale=scale), len(values), measure=measure)


def test_each_sample_has_another_seed_if_figures_follow_from_it():
    def measure(case, options):
        return Sample({"x_s": 10.0 * options.seed, **({"y": 1.0} if options.seed == 5 else {})})

    for virtual, seeds in ((True, [4, 5, 6]), (False, [4, 4, 4])):
        suite = replace(SUITE, virtual=virtual)
        found = runner.run(suite, suite.cases[:1], Options(seed=4), 3, measure=measure)
        assert found.virtual is virtual
        assert found.cases[0].samples["x_s"] == [10.0 * seed for seed in seeds]
        assert found.cases[0].seeds["x_s"] == seeds
        assert found.cases[0].seeds.get("y", []) == [5] * virtual


def test_all_of_several_targets_must_be_met():
    raw = {"title": "t", "about": "a", "metrics": {"x_s": {"title": "x"}, "y": {"title": "y", "better": "higher"}}}
    aims = [{"metric": "x_s", "at_most": 2.0}, {"metric": "y", "at_least": 1.0}]
    suite = specs.parse("demo", raw | {"cases": [{"name": "one", "sizes": {}, "target": aims}]})

    def met(x, y):
        found = runner.run(suite, suite.cases, Options(), 1, measure=lambda case, options: Sample({"x_s": x, "y": y}))
        assert found.cases[0].target == "x_s <= 2, y >= 1"
        return found.cases[0].target_met

    assert met(2.0, 1.0) is True
    assert met(2.1, 1.0) is False
    assert met(2.0, 0.9) is False


def test_the_median_decides_whether_a_target_is_met():
    assert run([1.0, 1.5, 9.0]).cases[0].target_met is True
    assert run([1.0, 2.5, 9.0]).cases[0].target_met is False
    assert run([1.0, 1.5, 9.0], scale=0.5).cases[0].target_met is None


def test_a_failed_check_makes_the_result_unsound():
    assert run([1.0]).sound
    found = run([1.0, 1.0], ok=False)
    assert not found.sound
    assert [check.detail for check in found.cases[0].failed] == ["no", "no"]


def test_results_survive_their_file(tmp_path):
    found = run([1.0, 2.0])
    found.write(tmp_path / "r.json")
    assert read(tmp_path / "r.json") == found


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1, "cases": [{}]}', '{"format": 99}'])
def test_a_file_without_results_is_rejected(tmp_path, text):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(ResultError, match=r"r\.json"):
        read(tmp_path / "r.json")


def stopping(error):
    """Measures two samples, and is then stopped by `error`."""
    left = [1.0, 2.0]

    def measure(case, options):
        if not left:
            raise error
        return Sample({"x_s": left.pop(0)})

    return measure


@pytest.mark.parametrize(
    ("repeat", "names"), [(1, ["one", "two"]), (2, ["one"]), (3, ["one"])], ids=["after all", "between", "within"]
)
@pytest.mark.parametrize(
    ("error", "why"), [(CannotMeasureError("no room"), "no room"), (KeyboardInterrupt(), runner.INTERRUPTED)]
)
def test_results_before_an_interruption_are_kept(repeat, names, error, why):
    remaining: list[list[str]] = []
    found = runner.run(
        SUITE,
        SUITE.cases,
        Options(),
        repeat,
        measure=stopping(error),
        keep=lambda result: remaining.append([case.name for case in result.cases]),
    )
    assert [case.name for case in found.cases] == names
    assert sum(len(case.samples["x_s"]) for case in found.cases) == 2
    assert found.stopped == ("" if repeat == 1 else why)
    assert remaining == {1: [["one"], ["one", "two"]], 2: [["one"]], 3: []}[repeat]
    assert found.cases[0].target_met is (None if repeat == 3 else True), "a target is met by all samples of a case"


@pytest.mark.parametrize(
    ("error", "code"), [(CannotMeasureError("no room"), 2), (KeyboardInterrupt(), 130)], ids=["cannot", "interrupted"]
)
def test_an_interrupted_run_writes_and_shows_its_results(monkeypatch, tmp_path, error, code):
    monkeypatch.setattr(round_suite, "measure", stopping(error))
    out = tmp_path / "r.json"
    # the table does not know the metric, but the file does
    done = CliRunner().invoke(cli, ["run", "round", "--repeat", "2", "--case", "fresh", "--json", str(out)])
    assert done.exit_code == code, done.output
    assert str(error) in done.output
    found = read(out)
    assert [case.samples["x_s"] for case in found.cases] == [[1.0, 2.0]]
    assert "A is incomplete: " + found.stopped in differences(found, run([1.0]))
    # nothing was measured: what the file holds stays
    assert CliRunner().invoke(cli, ["run", "round", "--case", "fresh", "--json", str(out)]).exit_code == code
    assert read(out) == found


@pytest.mark.parametrize("ignored", [False, True], ids=["as ever", "SIGINT is ignored"])
def test_sigterm_ends_a_run_as_an_interrupt_does(monkeypatch, tmp_path, ignored):
    def measure(case, options):
        if not left:
            signal.raise_signal(signal.SIGTERM)
            raise AssertionError("it went on")
        return Sample({"round_s": left.pop()})

    left, out = [1.0], tmp_path / "r.json"
    monkeypatch.setattr(round_suite, "measure", measure)
    terminate, interrupt = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    try:
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        done = CliRunner().invoke(cli, ["run", "round", "--case", "fresh", "--json", str(out)])
    finally:
        signal.signal(signal.SIGINT, interrupt)
    assert done.exit_code == 130, done.output
    assert read(out).stopped == runner.INTERRUPTED
    assert signal.getsignal(signal.SIGTERM) is terminate


def test_a_result_is_written_atomically(monkeypatch, tmp_path):
    out, link = tmp_path / "r.json", tmp_path / "link.json"
    run([1.0]).write(out)
    link.symlink_to(out)
    run([2.0]).write(link)
    assert read(out).cases[0].samples == {"x_s": [2.0]}

    def full(self, target):
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        run([3.0]).write(out)
    assert read(out).cases[0].samples == {"x_s": [2.0]}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "r.json"]


@pytest.mark.parametrize("command", [["run", "round"], ["simulate", "--preset", "philly"]], ids=["run", "simulate"])
def test_an_unwritable_file_is_reported_before_measuring(monkeypatch, tmp_path, command):
    def measured(*_, **__):
        raise AssertionError("it was measured")

    monkeypatch.setattr(runner, "run", measured)
    done = CliRunner().invoke(cli, [*command, "--json", str(tmp_path / "nix" / "r.json")])
    assert done.exit_code == 2, done.output
    assert "--json" in done.output
    assert "choose a file in a writable folder" in done.output
    assert list(tmp_path.iterdir()) == []


def test_choosing_cases():
    assert [case.name for case in runner.choose(SUITE, quick=True, names=())] == ["one"]
    assert [case.name for case in runner.choose(SUITE, quick=False, names=("w",))] == ["two"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [case for case in specs.load("round").cases if "large" not in case.labels], ids=lambda c: c.name
)
def test_every_round_is_sound_at_a_twentieth_of_its_size(case):
    sample = round_suite.measure(case, Options(scale=0.05))
    assert [check for check in sample.checks if not check.ok] == []
    assert sample.metrics["placed"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("case", specs.load("gangs").cases, ids=lambda c: c.name)
def test_every_round_of_gangs_is_sound_at_a_twentieth_of_its_size(case):
    sample = gangs_suite.measure(case, Options(scale=0.05))
    assert [check for check in sample.checks if not check.ok] == []
    if "reservation" in case.name:
        assert sample.facts["placed"] > 0, "backfilled tasks may use the reserved capacity until then"
    else:
        assert sample.metrics["admitted"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("suite", ["solver", "service-memory"])
def test_a_suite_runs_from_the_command_line(tmp_path, suite):
    out = tmp_path / "r.json"
    done = CliRunner().invoke(cli, ["run", suite, "--quick", "--scale", "0.1", "--json", str(out)])
    assert done.exit_code == 0, done.output
    raw = json.loads(out.read_text())
    assert raw["environment"]["python"]
    assert all(case["samples"] and not case["failed"] for case in raw["cases"])


def test_a_failed_check_sets_the_exit_code(monkeypatch):
    bad = Sample({"round_s": 0.1}, checks=[Check("no node is over-committed", False, "node-1 in cpu")])
    monkeypatch.setattr(round_suite, "measure", lambda case, options: bad)
    done = CliRunner().invoke(cli, ["run", "round", "--quick", "--case", "over"])
    assert done.exit_code == 1
    assert "node-1 in cpu" in done.output


def test_a_missed_target_fails_only_with_enforce(monkeypatch):
    monkeypatch.setattr(round_suite, "measure", lambda case, options: Sample({"round_s": 99.0}))
    arguments = ["run", "round", "--quick", "--case", "35000-pods/20"]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    assert CliRunner().invoke(cli, [*arguments, "--enforce"]).exit_code == 1


def test_the_table_names_another_scale(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # piped lines have no caption
    monkeypatch.setattr(round_suite, "measure", lambda case, options: Sample({"round_s": 0.1}))
    arguments = ["run", "round", "--quick", "--case", "35000-pods/20"]
    message = "all sizes times 0.1, so targets do not apply"
    assert message not in " ".join(CliRunner().invoke(cli, arguments).output.split())
    assert message in " ".join(CliRunner().invoke(cli, [*arguments, "--scale", "0.1"]).output.split())


def test_comparing_files(tmp_path):
    slow, fast = tmp_path / "slow.json", tmp_path / "fast.json"
    run([2.0, 2.1, 2.2, 2.3]).write(slow)
    run([1.0, 1.1, 1.2, 1.3]).write(fast)
    done = CliRunner().invoke(cli, ["compare", str(slow), str(fast), "--enforce"])
    assert done.exit_code == 0
    assert "better" in done.output
    assert CliRunner().invoke(cli, ["compare", str(fast), str(slow), "--enforce"]).exit_code == 1
    assert CliRunner().invoke(cli, ["compare", str(fast), str(slow)]).exit_code == 0


def test_comparing_enforces_checks_and_notes_what_is_not_compared(tmp_path):
    good, bad, small = (tmp_path / name for name in ("good.json", "bad.json", "small.json"))
    run([2.0, 2.1, 2.2, 2.3]).write(good)
    run([1.0, 1.1, 1.2, 1.3], ok=False).write(bad)
    run([1.0, 1.1, 1.2, 1.3], scale=0.5).write(small)
    done = CliRunner().invoke(cli, ["compare", str(good), str(bad), "--enforce"])
    assert done.exit_code == 1
    assert "failed checks" in done.output
    assert CliRunner().invoke(cli, ["compare", str(bad), str(good), "--enforce"]).exit_code == 1  # twice as slow
    done = CliRunner().invoke(cli, ["compare", str(good), str(small)])
    assert done.exit_code == 2
    assert "option scale differs: 1.0 and 0.5" in done.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "nix"],
        ["run", "round", "--case", "nix"],
        ["run", "round", "--seed", "-1"],
        ["compare", "nix.json", "nix.json"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_clear_line(arguments):
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 2
    assert "Error: " in done.output
    assert "Traceback" not in done.output


def test_list_names_all_suites():
    done = CliRunner().invoke(cli, ["list", "-v"])
    assert done.exit_code == 0
    assert all(name in done.output for name in specs.available())


def test_resized_cases_have_no_duplicates():
    suite = specs.load("end-to-end")
    chosen = [case for case in suite.cases if case.name.startswith("beforehand")]
    (only,) = runner.resized(chosen, nodes=7, pods=70)
    assert only.name == "beforehand/7-nodes/70-pods"
    assert (only.sizes["nodes"], only.sizes["pods"], only.targets) == (7, 70, ())
    assert runner.resized(chosen, None, None) == chosen


def test_a_live_option_is_rejected_for_other_suites():
    done = CliRunner().invoke(cli, ["run", "round", "--nodes", "5"])
    assert done.exit_code == 2
    assert "--nodes does not apply to suite round" in done.output


@pytest.mark.e2e
@pytest.mark.parametrize("mode", ["beforehand", "burst", "rate"])
def test_the_whole_path_is_measured(tmp_path, monkeypatch, mode):
    out, rates, create = tmp_path / "r.json", [], Pods.create

    async def noted(self, count, per_second=None, others=()):
        rates.append(per_second)
        await create(self, count, per_second, others)

    monkeypatch.setattr(Pods, "create", noted)
    arguments = ["run", "end-to-end", "--case", mode, "--nodes", "10", "--pods", "60", "--repeat", "1"]
    done = CliRunner().invoke(cli, [*arguments, "--json", str(out)])
    assert done.exit_code == 0, done.output
    (case,) = read(out).cases
    assert case.checked == 11  # those of the demo, and that all pods count
    assert case.failed == []
    assert case.samples["bound_per_s"][0] > 0
    assert 0 < case.samples["p50_s"][0] <= case.samples["p99_s"][0]
    assert ("ratio" in case.samples) is (mode != "rate")
    assert ("answer_p50_s" in case.samples) is (mode == "rate")
    assert rates == ([50, 50] if mode == "rate" else [None] * 3), "the blind binder's pods come at the same rate"
    if mode == "rate":
        assert case.samples["answer_p50_s"][0] < case.samples["p50_s"][0]
        assert case.samples["answer_p99_s"][0] < case.samples["p99_s"][0]
        # not above 0 in any case: a pod may be bound before this process has read the answer to its creation
        assert case.samples["blind_answer_p50_s"][0] <= case.samples["blind_answer_p99_s"][0]


@pytest.mark.e2e
@pytest.mark.parametrize("kind", ["never", "victims"])
def test_pods_are_measured_beside_companions_that_cannot_be_placed(tmp_path, kind):
    out = tmp_path / "r.json"
    arguments = ["run", "end-to-end", "--case", kind, "--nodes", "10", "--pods", "10", "--repeat", "1"]
    done = CliRunner().invoke(cli, [*arguments, "--json", str(out)])
    assert done.exit_code == 0, done.output
    (case,) = read(out).cases
    assert case.failed == []
    assert 0 < case.samples["p50_s"][0] <= case.samples["p99_s"][0]


@pytest.mark.e2e
@pytest.mark.parametrize("against", [False, True])
def test_a_restart_is_measured_from_the_start_to_the_first_bind(tmp_path, against):
    """The other scheduler is Poseidon by another name."""
    out, arguments = tmp_path / "r.json", ["run", "end-to-end", "--case", "restart/1000-", "--repeat", "1"]
    arguments += ["--nodes", "5", "--pods", "20"]
    with ExitStack() as stack:
        if against:
            kubeconfig, log = tmp_path / "kubeconfig", tmp_path / "log"
            serving = ["poseidon_py", "cluster", "--nodes", "5", "--port", "0", "--kubeconfig-out", str(kubeconfig)]
            server = stack.enter_context(child(serving, log))
            while not wait_for_file(server, kubeconfig, log, 30.0):
                time.sleep(0.02)
            command = f"{sys.executable} -m poseidon_py run --kubeconfig {{kubeconfig}} --scheduler-name other"
            arguments += ["--kubeconfig", str(kubeconfig), "--against", "other"]
            arguments += ["--start", f"{command} --health-port -1 --no-leader-elect"]
        done = CliRunner().invoke(cli, [*arguments, "--json", str(out)])
    assert done.exit_code == 0, done.output
    (case,) = read(out).cases
    assert case.failed == []
    assert 0 < case.samples["first_bind_s"][0] < 60
    assert case.samples["resident_mib"][0] > 10
    assert "ratio" not in case.samples


@pytest.mark.parametrize(("case", "start"), [("restart/1000-", []), ("burst/1000-", ["--start", "somebody"])])
def test_another_scheduler_starts_when_the_mode_says(tmp_path, case, start):
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("")
    arguments = ["run", "end-to-end", "--case", case, "--kubeconfig", str(kubeconfig), "--against", "somebody", *start]
    done = CliRunner().invoke(cli, arguments)
    assert "start" in done.output
    assert "cannot measure that scheduler so" in done.output


def test_a_start_without_the_name_of_the_scheduler_is_refused():
    done = CliRunner().invoke(cli, ["run", "end-to-end", "--case", "restart/1000-", "--start", "somebody"])
    assert done.exit_code == 2
    assert "--start needs --against" in done.output


@pytest.mark.e2e
@pytest.mark.parametrize("command", ["/no/such/scheduler", "'no end"])
def test_a_command_that_cannot_be_run_is_named(tmp_path, command):
    kubeconfig, log = tmp_path / "kubeconfig", tmp_path / "log"
    serving = ["poseidon_py", "cluster", "--nodes", "3", "--port", "0", "--kubeconfig-out", str(kubeconfig)]
    arguments = ["run", "end-to-end", "--case", "restart/1000-", "--nodes", "3", "--pods", "3", "--repeat", "1"]
    with child(serving, log) as server:
        while not wait_for_file(server, kubeconfig, log, 30.0):
            time.sleep(0.02)
        arguments += ["--kubeconfig", str(kubeconfig), "--against", "other", "--start", command]
        done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 2, done.output
    assert "cannot run --start" in done.output


def test_measuring_another_scheduler_needs_a_server():
    done = CliRunner().invoke(cli, ["run", "end-to-end", "--case", "burst/100", "--against", "somebody"])
    assert done.exit_code == 2
    assert "--kubeconfig" in done.output
