"""docs/operations.md says of each error in the log what to do."""

import ast
import re
from collections.abc import Iterator

from tests.paths import ROOT

LEVELS = {"error", "exception", "critical"}


def errors() -> Iterator[tuple[str, str]]:
    """Place and message of each call that logs an error; … stands for what varies."""
    for package in ("poseidon_py", "firmament_py", "policies"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text()
            if "logging" not in text:
                continue
            for node in ast.walk(ast.parse(text)):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                    continue
                by, called = node.func.value, node.func.attr
                is_log = isinstance(by, ast.Name) and by.id in ("log", "logger", "logging", "_log")
                levels = [each.attr for each in node.args if isinstance(each, ast.Attribute)] if called == "log" else []
                if is_log and (called in LEVELS or {"ERROR", "CRITICAL"} & set(levels)):
                    message = node.args[1 if called == "log" else 0]
                    place = f"{path.relative_to(ROOT)}:{node.lineno}"
                    assert isinstance(message, ast.Constant), f"{place}: the message is no text that can be looked up"
                    yield place, re.sub(r"%[-+ 0#]*\d*(\.\d+)?[a-zA-Z]", "…", str(message.value))


def on_page() -> set[str]:
    """The messages that the page names."""
    page = (ROOT / "docs" / "operations.md").read_text()
    section = page.split("\n## Errors in the log\n")[1].split("\n## ")[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| ") and "---" not in line]
    return {found.replace("``", "`") for row in rows for found in re.findall(r"(?<!`)`(?!`)((?:[^`]|``)+)`(?!`)", row)}


def test_each_error_is_on_the_page_and_the_page_names_no_others():
    logged = {message: place for place, message in errors()}
    assert {message: place for message, place in logged.items() if message not in on_page()} == {}
    assert on_page() - set(logged) == set()


def test_a_message_says_what_has_happened():
    """One that consists of what varies alone cannot be looked up."""
    assert [place for place, message in errors() if len(re.findall(r"[a-z]{3,}", message)) < 2] == []
