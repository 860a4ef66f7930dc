"""What is piped is a line for each record, without a box, a wrap or markup."""

import pytest

from poseidon_py.util.terminal import new_console, print_rows

LONG = "0/3 nodes are available: 3 Insufficient cpu. " * 5


def printed(capsys):
    console = new_console()
    rows = [("default/a", "3", f"[bold]{LONG.strip()}[/]"), ("default/long-name", "12", "")]
    print_rows(console, ("pod", "count", "why"), rows, right=("count",), prose="why")
    console.print(LONG.strip())
    return capsys.readouterr().out.splitlines()


def test_a_record_is_a_line(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert printed(capsys) == [
        "pod                count  why",
        f"default/a              3  {LONG.strip()}",
        "default/long-name     12",
        LONG.strip(),
    ]


@pytest.mark.parametrize("width", [80, 120])
def test_a_width_that_is_asked_for_is_honoured(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    assert max(map(len, printed(capsys))) <= width
