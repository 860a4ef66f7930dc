"""What a process is doing: the stacks of its threads and asyncio tasks."""

import asyncio
import sys
import threading
import traceback


def stacks() -> str:
    """Thread by thread, then task by task, each with its name. Called on the thread of the event loop."""
    frames = sys._current_frames()
    parts = [
        f"thread {thread.name}\n{''.join(traceback.format_stack(frames[thread.ident]))}"
        for thread in threading.enumerate()
        if thread.ident in frames
    ]
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        lines = "".join("".join(traceback.format_stack(frame)) for frame in task.get_stack())
        parts.append(f"task {task.get_name()}\n{lines}")
    return "\n".join(parts)
