"""The values that keys of ours may have, as patterns.

What reads a value is elsewhere, and says more about what is wrong with it. A pattern serves to refuse a value before it
is stored (deploy/admission.py): it accepts everything that is read, and may accept more. Patterns are in the syntax
that RE2 and Python share.
"""

from typing import NamedTuple


class Form(NamedTuple):
    """The form of a value. `text`: completes "give ..."; `patterns`: each matches the value as a whole."""

    text: str
    patterns: tuple[str, ...]


_NUMBER = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_DURATION = rf"^\s*({_NUMBER}|({_NUMBER}(ns|us|µs|μs|ms|s|m|h))+)\s*$"
_COUNT = r"0{0,9}[1-9][0-9]{0,9}"
_QUANTITY = r"\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,9})?"
_SPEED = r"\s*[^=,]*[^=,\s][^=,]*=\s*[0-9]{1,6}(\.[0-9]{1,6})?\s*"

SWITCH = Form("true or false", (r"^(true|false)$",))
COUNT = Form("a whole number from 1", (rf"^\s*{_COUNT}\s*$",))
GANG = Form("all, none or a whole number from 1", (rf"(?i)^(all|true|yes|none|false|no|\s*{_COUNT}\s*)$",))
ROLE = Form("the name of a role, alone or like worker=2", (r"^[^=]*(=\s*[0-9]{1,10}\s*)?$",))
TOPOLOGY_MODE = Form("required or preferred", (r"^(required|preferred)$",))
LABEL_KEY = Form(
    "the key of a label of nodes, like topology.kubernetes.io/zone",
    (r"^(([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",),
)
ATTRIBUTE = Form(
    "the name of an attribute of devices, like resource.kubernetes.io/pcieRoot",
    (r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z_][A-Za-z0-9_]*)?$",),
)
DURATION = Form("a duration like 90s, 10m or 600", (_DURATION,))
POSITIVE_DURATION = Form("a duration above 0, like 90s, 1h30m or 5400", (_DURATION, r"[1-9]"))
TIME = Form(
    "a time like 2006-01-02T15:04:05Z", (r"^([0-9]{4}-?(W[0-9]{2}(-?[0-9])?|[0-9]{2}-?[0-9]{2})([^0-9].*)?)?$",)
)
INTERFERENCE_CLASS = Form("sheep, rabbit, devil or turtle", (r"(?i)^(sheep|rabbit|devil|turtle)$",))
NAME = Form("a name of 1 to 253 characters", (r"(?s)^.{1,253}$", r"\S"))
SPEED = Form("speeds by platform, like c5.xlarge=1.6, m5.large=1", (rf"^{_SPEED}(,{_SPEED})*$",))
DATA = Form(
    "blocks like 10Gi@n1,n2; 1048576@rack/r1",
    (rf"(?s)^[\s;]*([\[{{].*|({_QUANTITY}(@[^\s;,]+(,[^\s;,]+)*)?([\s;]+|$))*)$",),
)
BANDWIDTH = Form("bits per second, like 100M", (rf"^{_QUANTITY}$",))
MAPPING = Form("a JSON object", (r"(?s)^\s*(\{.*\}\s*)?$",))
LIST = Form("a JSON list", (r"(?s)^\s*(\[.*\]\s*)?$",))
