"""The files of the page: nothing from elsewhere, no markup that could run, plotly.js out of its package."""

import gzip
import re
import sys
from importlib.machinery import ModuleSpec

import pytest

from poseidon_py.cli.main import cli
from poseidon_py.dashboard.assets import HEADERS, MissingPlotly, plotly_file
from tests.command_line import invoke
from tests.paths import ROOT
from tests.poseidon_py.dashboard.seen import API

STATIC = ROOT / "poseidon_py" / "dashboard" / "static"


async def test_each_answer_forbids_what_the_page_does_not_need(seen):
    for path in ("/dashboard/", "/dashboard/page.js", f"{API}/overview", f"{API}/pods?limit=x"):
        _, _, headers = await seen.get(path)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "script-src" not in policy  # so that scripts fall under the line above: none inline, no eval
        assert headers["X-Content-Type-Options"] == "nosniff"
    assert (await seen.get("/dashboard"))[2]["Location"] == "/dashboard/"


async def test_files_are_compressed_and_not_sent_again(seen, plotly):
    status, text, headers = await seen.get("/dashboard/plotly.min.js")
    assert (status, text, headers["Content-Encoding"]) == (200, plotly.read_text(), "gzip")
    url = f"http://127.0.0.1:{seen.probes.port}/dashboard/plotly.min.js"
    async with seen.session.get(url, headers={"If-None-Match": headers["ETag"]}) as again:
        assert again.status == 304
    async with seen.session.get(url, headers={"Accept-Encoding": "identity"}) as plain:
        assert "Content-Encoding" not in plain.headers
        assert await plain.text() == plotly.read_text()


@pytest.mark.parametrize("path", sorted(STATIC.iterdir()), ids=lambda path: path.name)
def test_own_files_load_nothing_from_elsewhere_and_make_no_markup_of_texts(path):
    text = path.read_text()
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text)
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc"):
        assert word not in text, word
    if path.suffix == ".html":
        assert not re.findall(r"\son\w+=|<script(?![^>]*\ssrc=)", text)
    assert len(gzip.compress(text.encode())) < 8_000


@pytest.mark.parametrize(
    ("spec", "lacks"),
    [
        (None, "is not installed"),
        (ModuleSpec("plotly", None, is_package=True), "is not installed"),
    ],
    ids=["absent", "a folder without files"],
)
def test_without_plotly_the_command_that_installs_it_is_told(monkeypatch, spec, lacks):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    with pytest.raises(MissingPlotly, match=rf"{lacks}; run: pip install 'poseidon-firmament\[dashboard\]'"):
        plotly_file()


def test_a_start_without_plotly_fails_and_says_so(monkeypatch, tmp_path):
    (tmp_path / "kubeconfig").touch()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = invoke(cli, "run", "--dashboard", "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert result.exit_code == 2
    assert "pip install 'poseidon-firmament[dashboard]'" in result.output


def test_plotly_is_found_without_being_imported(tmp_path, monkeypatch):
    package = tmp_path / "plotly"
    (package / "package_data").mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    (package / "package_data" / "plotly.min.js").write_text("x")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "plotly", raising=False)
    assert plotly_file() == package / "package_data" / "plotly.min.js"
    assert "object-src 'none'" in HEADERS["Content-Security-Policy"]
