"""Lanes of queues whose jobs are served by past use: one for each local queue, and one for what came through none."""

import numpy as np

from firmament_py.model.arrays import F64, I64
from firmament_py.sharing.jobs import Jobs
from firmament_py.sharing.past_use import Past, entry_scores, local_scores, local_weights, score
from firmament_py.sharing.use import QueueUse
from firmament_py.state.cluster import ClusterState


class Lanes:
    """Scores of lanes in a round: 0 .. Q - 1 are those of the queues, then those of the local queues."""

    def __init__(self, state: ClusterState, use: QueueUse, past: Past | None) -> None:
        """Without `past` all jobs of a queue are in one lane."""
        self._use = use
        self._by_past_use = past is not None
        self._score: F64 = np.zeros(use.queues.count)
        if past is not None:
            queues = use.queues
            through = past.queues.copy()  # what came through no local queue
            rows = [queues.row.get(each.queue, -1) for each in queues.tree.local_queues]
            known = np.array(rows, np.int64) >= 0
            np.subtract.at(through, np.array(rows, np.int64)[known], past.local_queues[known])
            through = np.maximum(through, 0.0)
            of_queues = score(queues, through, np.zeros(through.shape), np.ones(queues.count))
            self._score = np.concatenate([of_queues, local_scores(state, use, past)])
            self._weight = np.concatenate([np.ones(queues.count), local_weights(queues)])

    def of(self, jobs: Jobs) -> tuple[I64, F64, F64]:
        """The lane (J,) of each job, what the admission of one item adds to its score (J,), and all scores."""
        if not self._by_past_use:
            return jobs.queue, np.zeros(len(jobs.queue)), self._score
        lane = np.where(jobs.local_queue >= 0, self._use.queues.count + jobs.local_queue, jobs.queue)
        return lane, entry_scores(self._use.queues, jobs.request, self._weight[lane]), self._score

    def charge(self, jobs: Jobs, admitted: I64) -> None:
        """So many items (J,) of jobs were admitted."""
        lane, charge, _ = self.of(jobs)
        np.add.at(self._score, lane, charge * admitted)
