"""The shape of the tree: what may import what is refused where it should be, folders and modules stay small."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import CodeType

import pytest

from tests.paths import ROOT

PRODUCT = ("firmament_py", "poseidon_py", "policies", "protos", "benchmarks")
MODULES_OF_A_FOLDER = 18
LINES_OF_A_MODULE = 400


def modules(package):
    return [path for path in (ROOT / package).rglob("*.py") if "gen" not in path.parts]


def folders(package):
    """Folders with modules, as paths below the root."""
    return {path.parent.relative_to(ROOT) for path in modules(package)}


@pytest.mark.parametrize("package", PRODUCT)
def test_no_folder_holds_many_modules(package):
    in_use = {
        folder: sum(path.name != "__init__.py" for path in (ROOT / folder).glob("*.py")) for folder in folders(package)
    }
    assert {folder: count for folder, count in in_use.items() if count > MODULES_OF_A_FOLDER} == {}


@pytest.mark.parametrize("package", PRODUCT)
def test_children_have_no_present_folder_on_their_module_path(package):
    """Beside a file numpy.py, or another checkout, a flow service that was started without -P ran that."""
    starts = {path.relative_to(ROOT): path.read_text().split("sys.executable")[1:] for path in modules(package)}
    assert [path for path, after in starts.items() if not all(each.startswith(', "-P"') for each in after)] == []


@pytest.mark.parametrize("package", PRODUCT)
def test_no_module_is_long(package):
    lines = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in modules(package)}
    assert {path: count for path, count in lines.items() if count > LINES_OF_A_MODULE} == {}


# fmt: off
HOME_MADE = [
    "Allotment", "KeptRoom", "Keeper", "Look", "Looks", "Marks", "Nonsense", "Parts", "Room", "Rooms", "Shelf",
    "Shelves", "Thing", "Things", "Told", "Unit", "Units", "allotment", "at_home", "bargain", "bargains", "beyond",
    "crowd", "crowded", "crowds", "deal", "elsewhere", "enough", "gets_turn", "get_turns", "held", "homes",
    "in_turns", "keeper", "keepers", "kept", "leave_out", "let_go", "linger", "lone", "look", "look_at", "looks",
    "marks", "more", "most", "nonsense", "ours", "rest", "room", "rooms", "said", "shelf", "shelves", "soon",
    "supposing", "take_back", "tenant", "thing", "things", "told", "turn", "wanted", "way_out", "widening",
    "widenings",
]
# fmt: on
"""Words that say less than the field's own terms; README.md and docs/architecture.md use those."""


def defined_names(path):
    """Names that a module binds: functions, classes, arguments, variables, attributes; without underscores in front."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name.lstrip("_")
        elif isinstance(node, ast.arg):
            yield node.arg.lstrip("_")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id.lstrip("_")
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr.lstrip("_")


def mentioned(code):
    """What a compiled module names, those of annotated fields as constants: a third of the time of a syntax tree."""
    yield from (*code.co_names, *code.co_varnames, *code.co_cellvars)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from mentioned(constant)
        elif isinstance(constant, str):
            yield constant


REFUSED = {*HOME_MADE, *(word.upper() for word in HOME_MADE)} - {"UNIT", "UNITS"}


@pytest.mark.parametrize("package", [*PRODUCT, "tests"])
def test_names_are_the_terms_of_the_field(package):
    suspects = [
        path
        for path in modules(package)
        if any(name.lstrip("_") in REFUSED for name in mentioned(compile(path.read_text(), path, "exec")))
    ]
    assert not {
        (str(path.relative_to(ROOT)), name) for path in suspects for name in defined_names(path) if name in REFUSED
    }


@pytest.mark.parametrize(
    "text",
    [
        "def said(): ...",
        "class C:\n    said: int",
        "class C:\n    def f(self):\n        self._said = 1",
        "def f(said): ...",
        "def f():\n    said = 1\n    return lambda: said",
        "for said in (): ...",
        "f = lambda *, said: 1",
    ],
)
def test_a_name_that_a_module_binds_is_mentioned(text, tmp_path):
    module = tmp_path / "module.py"
    module.write_text(text)
    assert "said" in {name.lstrip("_") for name in mentioned(compile(text, "module", "exec"))}
    assert "said" in set(defined_names(module))


@pytest.mark.parametrize("package", PRODUCT)
def test_every_package_has_a_charter(package):
    """One sentence at the top of __init__.py."""
    without = [
        str(folder)
        for folder in folders(package)
        if not ast.get_docstring(ast.parse((ROOT / folder / "__init__.py").read_text()))
    ]
    assert without == []


@pytest.mark.parametrize("package", ["firmament_py", "poseidon_py", "benchmarks"])
def test_the_tests_have_the_folders_of_the_product(package):
    unknown = {
        str(folder.relative_to("tests"))
        for folder in folders("tests")
        if folder.parts[1:2] == (package,) and not (ROOT / folder.relative_to("tests")).is_dir()
    }
    assert unknown == set()


def lint(tmp_path, contract, path, text):
    """What lint-imports says of a copy of the tree in which the module at `path` holds `text`, too."""
    for package in PRODUCT:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    added = tmp_path / path
    added.write_text((added.read_text() if added.exists() else "") + text)
    command = Path(sys.executable).parent / "lint-imports"
    return subprocess.run(
        [command, "--config", ROOT / ".importlinter", "--contract", contract, "--no-cache"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("contract", "path", "text", "refusal"),
    [
        pytest.param("engine", "firmament_py/stray.py", "", "stray", id="a module outside the engine's layers"),
        pytest.param("bridge", "poseidon_py/stray.py", "", "stray", id="a module outside the bridge's layers"),
        pytest.param(
            "engine",
            "firmament_py/model/arrays.py",
            "\nimport firmament_py.state.cluster\n",
            "firmament_py.model is not allowed to import firmament_py.state",
            id="an import upwards in the engine",
        ),
        pytest.param(
            "bridge",
            "poseidon_py/kube/objects.py",
            "\nimport poseidon_py.state.store\n",
            "poseidon_py.kube is not allowed to import poseidon_py.state",
            id="an import upwards in the bridge",
        ),
        pytest.param(
            "no-cycles",
            "firmament_py/model/arrays.py",
            "\nimport firmament_py.model.events\n",
            "No cycles are allowed in firmament_py.model",
            id="a circle inside a package",
        ),
        pytest.param(
            "independent-check",
            "firmament_py/audit/placements.py",
            "\nimport firmament_py.snapshot.solo_capacity\n",
            "firmament_py.audit is not allowed to import firmament_py.snapshot",
            id="the check asks what places",
        ),
        pytest.param(
            "policies",
            "policies/trivial.py",
            "\nimport firmament_py.model.arrays\n",
            "policies.trivial -> firmament_py.model.arrays",
            id="a policy looks behind its interface",
        ),
        pytest.param(
            "one-solver",
            "firmament_py/network/build.py",
            "\nimport networkx\n",
            "firmament_py.network.build -> networkx",
            id="a second importer of solvers",
        ),
        pytest.param(
            "bridge-knows-no-flow",
            "poseidon_py/app/bridge.py",
            "\nimport benchmarks.cluster.cluster\n",
            "poseidon_py.app.bridge -> benchmarks.cluster.cluster",
            id="the scheduler needs what is synthetic",
        ),
    ],
)
def test_imports_that_break_the_order_are_refused(tmp_path, contract, path, text, refusal):
    result = lint(tmp_path, contract, path, text)
    assert result.returncode == 1, result.stdout + result.stderr
    assert refusal in " ".join(result.stdout.split()), result.stdout
