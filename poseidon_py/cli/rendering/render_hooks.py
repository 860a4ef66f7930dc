"""The output of `poseidon hooks`."""

from rich.console import Console
from rich.markup import escape

from poseidon_py.hooks.storage.inspection import Stored
from poseidon_py.util.terminal import print_rows

NOTHING = "no deliveries wait, and there are no dead letters"


def print_hooks(stores: list[Stored], hook: str | None, now: float, console: Console) -> None:
    """A line for each hook with deliveries that wait, dead letters, or dropped ones."""
    rows = []
    for stored in stores:
        for name in stored.hooks:
            if hook not in (None, name):
                continue
            pending, dead = stored.pending(name), stored.dead(name)
            oldest = duration(now - min(record.reported for record in pending)) if pending else ""
            errors = [record for record in pending if record.error]
            last = max(errors, key=lambda record: record.due).error if errors else ""
            dropped = str(stored.dropped.get(name, 0))
            rows.append(
                [*map(escape, (stored.name, name)), str(len(pending)), oldest, str(len(dead)), dropped, escape(last)]
            )
    if rows:
        header = ("store", "hook", "pending", "oldest", "dead", "dropped", "last error")
        print_rows(console, header, rows, right=("pending", "oldest", "dead", "dropped"), prose="last error")
    else:
        console.print(NOTHING)
    _print_unreadable(stores, console)


def print_dead(stores: list[Stored], hook: str | None, now: float, console: Console) -> None:
    """A line for each dead letter."""
    rows = [
        [
            escape(record.hook),
            record.id,
            escape(record.subject),
            duration(now - record.dead),
            str(record.attempts),
            escape(record.error),
        ]
        for stored in stores
        for record in stored.dead(hook)
    ]
    if rows:
        header = ("hook", "id", "transition", "dead for", "attempts", "error")
        print_rows(console, header, rows, right=("dead for", "attempts"), prose="error")
    else:
        console.print("there are no dead letters")
    _print_unreadable(stores, console)


def duration(seconds: float) -> str:
    """As kubectl shows ages."""
    whole = max(0, int(seconds))
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if whole >= 2 * size:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def _print_unreadable(stores: list[Stored], console: Console) -> None:
    for stored in stores:
        if stored.unreadable:
            console.print(
                f"{stored.unreadable} entries of {stored.name} cannot be read by this version",
                markup=False,
                highlight=False,
            )
