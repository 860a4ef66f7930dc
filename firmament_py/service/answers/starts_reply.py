"""When waiting tasks are expected to start, as a message."""

import numpy as np

from firmament_py.forecast.forecasts import Forecasts
from firmament_py.forecast.start_errors import SHARE
from protos.gen import flow_pb2


def starts_reply(forecasts: Forecasts, request: flow_pb2.StartsRequest, now_us: int) -> flow_pb2.StartsReply:
    """The last forecast, asked for at `now_us`, microseconds since the epoch."""
    errors, future = forecasts.errors, forecasts.asked(now_us)
    if future is None:
        return flow_pb2.StartsReply(problem=forecasts.problem)
    asked = np.isin(future.uids, np.array(request.uid, np.uint64)) if request.uid else np.ones(len(future.uids), bool)
    (chosen,) = asked.nonzero()
    starts_us = future.starts_us[chosen]
    earliest, likely, latest = errors.intervals(future.made_us, starts_us)
    nodes = [future.nodes[i] for i in chosen.tolist()]
    number = {node: k for k, node in enumerate(dict.fromkeys(filter(None, nodes)), start=1)}
    return flow_pb2.StartsReply(
        made_us=future.made_us,
        uid=future.uids[chosen].tolist(),
        earliest_us=earliest.tolist(),
        likely_us=likely.tolist(),
        latest_us=latest.tolist(),
        node=[number.get(node, 0) for node in nodes],
        nodes=number,
        whole=future.whole,
        errors=errors.compared(future.made_us),
        probability=SHARE,
        durations=forecasts.run_times.learned,
    )
