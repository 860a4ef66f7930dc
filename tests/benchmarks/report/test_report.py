"""Reports: figures of a result, plots, the page, the command."""

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import cli
from benchmarks.harness.results import CaseResult, Check, SuiteResult
from benchmarks.harness.series import Series
from benchmarks.report.drawing import draw
from benchmarks.report.figures import Figure, Line, figures
from benchmarks.report.page import labels, render

WHERE = {
    "time": "2026-01-01T00:00:00+00:00",
    "cpu": "a <fast> one",
    "cores": 2,
    "system": "Linux",
    "python": "3.12",
    "libraries": {"numpy": "2.1"},
    "commit": "abc",
    "load_average": [0.5],
}
METRICS = {
    "round_s": {"title": "whole round", "unit": "s", "better": "lower"},
    "share": {"title": "share", "unit": "ratio", "better": "higher"},
}


def case(name, nodes, *seconds, **fields):
    return CaseResult(name, {"nodes": nodes, "pods": 10 * nodes, "fill": 0.5}, {"round_s": list(seconds)}, **fields)


def result(*cases, factor=1.0):
    for one in cases:
        one.samples["round_s"] = [factor * value for value in one.samples["round_s"]]
    return SuiteResult("round", WHERE, {"repeat": 3, "scale": 1.0, "seed": 0}, METRICS, list(cases))


def series(name, kind, x, y):
    return Series(name, kind, x, y, "t", "s", name, "")


def grown():
    sizes = [(100, 0.01), (1000, 0.1), (10000, 1.0)]
    return [case(f"fresh/{nodes}-nodes/{10 * nodes}-pods", nodes, s, 2 * s, 3 * s) for nodes, s in sizes]


def test_a_spread_shows_every_case_with_its_samples_and_targets():
    found = figures(result(case("a", 1, 3.0, 1.0, 2.0, target="share >= 9, round_s <= 0.5"), case("b", 1, 4.0)))
    (spread,) = found
    assert (spread.kind, spread.title, spread.x_title) == ("spread", "whole round", "whole round [s]")
    a, b = spread.markers
    assert (a.label, a.median, a.low, a.high, a.target) == ("a", 2.0, 1.0, 3.0, 0.5)
    assert (b.median, b.low, b.high, b.target) == (4.0, 4.0, 4.0, None)
    assert not spread.log_x


def test_cases_that_differ_in_size_alone_are_one_curve_of_growth():
    others = [case("full/100-nodes", 100, 1.0), case("full/200-nodes", 200, 1.0)]  # two points are no curve
    _, growth = figures(result(*grown(), *others))
    (line,) = growth.lines
    assert (growth.kind, growth.x_title, growth.log_x, growth.log_y) == ("growth", "nodes", True, True)
    assert (line.label, list(line.x)) == ("fresh", [100, 1000, 10000])
    assert list(line.y) == [0.02, 0.2, 2.0]
    assert (list(line.low), list(line.high)) == ([0.01, 0.1, 1.0], [0.03, pytest.approx(0.3), 3.0])


def test_cases_of_other_kinds_are_separate_curves():
    extra = grown()
    for one in extra:
        one.sizes["fill"] = 0.9
        one.name = one.name.replace("fresh", "full")
    _, growth = figures(result(*grown(), *extra))
    assert [line.label for line in growth.lines] == ["fresh", "full"]


def test_the_series_of_a_suite_are_drawn_over_all_cases():
    cases = [
        case(f"c{n}", 1, 1.0, series=[series("used", "timeline", [0, 1], [0.1, n]), series("wait", "cdf", [1], [1])])
        for n in range(18)
    ]
    _, used, wait = figures(result(*cases))
    assert (used.kind, used.title, used.x_title, used.y_title) == ("timeline", "used", "t [s]", "used")
    assert [line.label for line in used.lines] == [f"c{n}" for n in range(16)]
    assert (used.left_out, wait.kind) == (2, "cdf")
    assert not used.log_x


def test_lines_are_named_by_what_differs():
    def labels(*names):
        cases = [case(name, 1, 1.0, series=[series("used", "timeline", [0], [1])]) for name in names]
        return [line.label for line in figures(result(*cases))[-1].lines]

    assert labels("effects/500-nodes/quincy", "effects/500-nodes/octopus") == ["quincy", "octopus"]
    assert labels("a/b", "a/b/c") == ["b", "b/c"]
    assert labels("a/b", "c/b") == ["a/b", "c/b"]
    assert labels("a/b") == ["a/b"]


def test_no_two_lines_look_alike():
    lines = tuple(Line(f"line {n}", [0, 1], [n, n]) for n in range(16))
    picture = draw(Figure("timeline", "many", "x", "y", lines=lines)).decode()
    paths = re.findall(r'<path d="[^"]+" clip-path="[^"]+" style="([^"]+)"', picture)
    styles = [style for style in paths if "stroke-width: 1.3" in style]
    assert len(styles) == 16
    assert len(set(styles)) == 16


@pytest.mark.parametrize("kind", ["timeline", "cdf", "curve", "growth"])
@pytest.mark.parametrize("form", ["svg", "png"])
def test_plots_are_reproducible_images(kind, form):
    ends = {"low": [0.5, 1.0, 2.0], "high": [1.5, 3.0, 9.0]} if kind == "growth" else {}
    figure = Figure(
        kind, "a title", "x", "y", lines=(Line("a line", [1, 10, 100], [1.0, 2.0, 4.0], **ends),), log_x=True
    )
    picture = draw(figure, form)
    assert picture == draw(figure, form)
    if form == "png":
        assert picture.startswith(b"\x89PNG\r\n")
    else:
        text = " ".join(ElementTree.fromstring(picture).itertext())
        assert "a title" in text
        assert "a line" in text


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.pictures, self.links, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.links += [given[name] for name in ("href", "src") if name in given]
        if tag == "img":
            self.pictures.append(given)

    def handle_data(self, data):
        self.words.append(data.strip())


def test_a_page_is_self_contained():
    reported: list[Figure] = []
    broken = case("d", 1, 1.0, failed=[Check("sound", False, "<b>not</b>")], checked=1, target="round_s <= 1")
    broken.target_met = False
    page = Page(render([("one", result(*grown(), broken))], reported.append))
    assert len(page.pictures) == len(reported) == 2
    assert all(link.startswith(("#", "data:image/svg+xml;base64,")) for link in page.links)
    for picture in page.pictures:
        ElementTree.fromstring(base64.b64decode(picture["src"].partition(",")[2]))
    text = " ".join(page.words)
    assert "a <fast> one" in text  # escaped
    assert "sound: <b>not</b>" in text
    assert "round_s <= 1, missed" in text
    assert "200 ms" in text


def test_results_of_one_suite_are_compared_with_the_first():
    first, slower = (result(*(case("a", 1, *[1.0 + i / 100 for i in range(6)]),), factor=f) for f in (1.0, 2.0))
    text = " ".join(Page(render([("before", first), ("after", slower)])).words)
    assert "after compared with before" in text
    assert re.search(r"2\.000 .* worse", text)


def test_a_comparison_without_a_ratio_is_shown():
    none, some = (result(case("a", 1, *[0.0] * 6)), result(case("a", 1, *[1.0] * 6)))
    some.cases[0].failed.append(Check("sound", False, "no"))
    words = Page(render([("before", none), ("after", some)])).words
    assert words.count("failed checks") == 2


def test_the_command_writes_a_page_and_plots(tmp_path):
    result(*grown()).write(tmp_path / "a.json")
    out, plots = tmp_path / "page.html", tmp_path / "plots"
    arguments = ["report", str(tmp_path / "a.json"), "--out", str(out), "--plots", str(plots), "--format", "png"]
    ran = CliRunner().invoke(cli, arguments)
    assert ran.exit_code == 0, ran.output
    assert "<h1>poseidon-bench</h1>" in out.read_text()
    names = sorted(path.name for path in plots.iterdir())
    assert names == ["a-growth-whole-round.png", "a-spread-whole-round.png"]


def test_files_of_one_name_are_numbered(tmp_path):
    assert labels([Path("a/r.json"), Path("b/r.json"), Path("s.json")]) == ["r-1", "r-2", "s"]
    assert labels([Path("r.json"), Path("r-1.json"), Path("b/r.json")]) == ["r-2", "r-1", "r-3"]
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        result(*grown()).write(tmp_path / folder / "r.json")
    files, plots = [str(tmp_path / folder / "r.json") for folder in ("a", "b")], tmp_path / "plots"
    ran = CliRunner().invoke(cli, ["report", *files, "--out", str(tmp_path / "p.html"), "--plots", str(plots)])
    assert ran.exit_code == 0, ran.output
    assert f"{plots}: 4 plots" in ran.output
    assert len(list(plots.iterdir())) == 4
    assert "r-2 compared with r-1" in (tmp_path / "p.html").read_text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"environment": {}}, "environment.time is missing"),
        ({"environment": None}, "environment is missing"),
        ({"environment": {**WHERE, "commit": 1}}, "environment.commit is missing or has the wrong type"),
        ({"environment": {**WHERE, "load_average": []}}, "environment.load_average is empty"),
        ({"options": {}}, "options.repeat is missing"),
        ({"metrics": {"round_s": {"title": "t"}}}, "metrics.round_s needs title, unit and better"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value,
)
def test_an_incomplete_result_is_rejected(tmp_path, change, message):
    path = tmp_path / "a.json"
    result(*grown()).write(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    ran = CliRunner().invoke(cli, ["report", str(path), "--out", str(tmp_path / "page.html")])
    assert ran.exit_code == 2
    assert message in ran.output.replace("\n", " ")
    assert not (tmp_path / "page.html").exists()


def test_a_file_without_results_is_reported_and_no_page_is_written(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    ran = CliRunner().invoke(cli, ["report", str(tmp_path / "a.json"), "--out", str(tmp_path / "page.html")])
    assert ran.exit_code == 2
    assert "is not a results file" in ran.output
    assert not (tmp_path / "page.html").exists()


def test_without_matplotlib_the_error_names_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    result(*grown()).write(tmp_path / "a.json")
    ran = CliRunner().invoke(cli, ["report", str(tmp_path / "a.json"), "--out", str(tmp_path / "page.html")])
    assert ran.exit_code == 2
    assert "pip install '.[report]'" in ran.output
