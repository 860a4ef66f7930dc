"""Plans of moves in the fake engine: steps begin in order, one round after the other."""

from typing import Any

from protos.gen import flow_pb2

_STAGE = flow_pb2.MoveProgress
_ENDED = (_STAGE.DONE, _STAGE.ELSEWHERE, _STAGE.DROPPED)


class FakeMoves:
    """A step begins with the first round after the steps that it waits for have ended. A task that leaves is done once
    it is removed; one that waits is dropped then."""

    def __init__(self) -> None:
        self.steps: list[flow_pb2.Step] = []
        self.progress: dict[int, flow_pb2.MoveProgress] = {}
        """By task, of the steps that were sent last and of those that have begun."""

    def carry_out(self, steps: Any, leaving: set[int]) -> None:
        """Without steps, none begins any more."""
        if not steps:
            for each in self.progress.values():
                if each.stage == _STAGE.WAITING:
                    each.stage, each.reason = _STAGE.DROPPED, "the plan was ended"
            self.steps = []
            return
        self.steps = list(steps)
        self.progress = {}
        for step in self.steps:
            leaves = any(move.task_uid in leaving for move in step.moves)
            for move in step.moves:
                each = self.progress[move.task_uid] = _STAGE(task_uid=move.task_uid, stage=_STAGE.WAITING)
                if leaves:
                    each.stage, each.reason = _STAGE.DROPPED, "it is leaving already"

    def begin(self) -> list[flow_pb2.Move]:
        """The moves that a round decides on."""
        found = []
        for step in self.steps:
            before = [move for at in step.after for move in self.steps[at].moves]
            if any(self.progress[move.task_uid].stage not in _ENDED for move in before):
                continue
            for move in step.moves:
                progress = self.progress[move.task_uid]
                if progress.stage == _STAGE.WAITING:
                    progress.stage = _STAGE.LEAVING
                    found.append(move)
        return found

    def removed(self, task: int) -> None:
        if (progress := self.progress.get(task)) is not None:
            if progress.stage == _STAGE.LEAVING:
                progress.stage = _STAGE.DONE
            elif progress.stage == _STAGE.WAITING:
                progress.stage, progress.reason = _STAGE.DROPPED, "it has ended"

    def stays(self, task: int) -> None:
        """The task does not leave, although a round may have decided on it."""
        progress = self.progress.get(task)
        if progress is not None and progress.stage == _STAGE.LEAVING:
            progress.stage, progress.reason = _STAGE.DROPPED, "its eviction was refused"

    def reply(self) -> flow_pb2.PlanProgress:
        active = any(each.stage not in _ENDED for each in self.progress.values())
        return flow_pb2.PlanProgress(moves=self.progress.values(), active=active)
