"""When waiting tasks are expected to start, as a message."""

from firmament_py.forecast.forecasts import Forecasts
from protos.gen import flow_pb2


def starts_reply(forecasts: Forecasts, now_us: int) -> flow_pb2.StartsReply:
    """The last forecast, asked for at `now_us`, microseconds since the epoch."""
    errors, future = forecasts.errors, forecasts.asked(now_us)
    if future is None:
        return flow_pb2.StartsReply(problem=forecasts.problem)
    earliest, likely, latest = errors.intervals(future.made_us, future.starts_us)
    number = {node: k for k, node in enumerate(dict.fromkeys(filter(None, future.nodes)), start=1)}
    return flow_pb2.StartsReply(
        made_us=future.made_us,
        uid=future.uids.tolist(),
        earliest_us=earliest.tolist(),
        likely_us=likely.tolist(),
        latest_us=latest.tolist(),
        node=[number.get(node, 0) for node in future.nodes],
        nodes=number,
        whole=future.whole,
        errors=errors.known,
        durations=forecasts.run_times.learned,
    )
