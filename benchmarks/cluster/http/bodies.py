"""Request bodies, selections, numbers and options. The results are JSON values of bounded depth, or a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import yaml
from aiohttp import web

from benchmarks.cluster.api.schema import MAX_DEPTH, check_depth, too_deep
from benchmarks.cluster.http import protobuf
from benchmarks.cluster.http.paths import Target
from benchmarks.cluster.store.errors import ApiError, Json, bad_request, unsupported_media_type
from benchmarks.cluster.store.lists import is_number
from benchmarks.cluster.store.selectors import parse_fields, parse_labels
from benchmarks.cluster.store.store import Selection

Query = Mapping[str, str]

_MEDIA_TYPES = ("application/json", "application/yaml", protobuf.MEDIA_TYPE)


class _YamlLoader(yaml.SafeLoader):
    """YAML limited to JSON values: dates are strings, and aliases, which a few lines could expand without bound, are
    refused."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """The next node, unless it is an alias."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not supported: write the value out")
        return super().compose_node(parent, index)


_YamlLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


async def read_body(request: web.BaseRequest, subresource: str = "", *, any_type: bool = False) -> Any:
    """The body as JSON values, {} if there is none; 400, 413 or 415 if it cannot be read.

    With `any_type` the Content-Type need not be one that the API server accepts.
    """
    limit = request.client_max_size
    if (request.content_length or 0) > limit:  # refused before any of it is read
        raise _too_large(limit)
    try:
        raw = await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise _too_large(limit) from error
    except web.RequestPayloadError as error:
        raise bad_request(f"couldn't read the request body: {error}") from error
    if not raw:
        return {}
    kind = request.headers.get("Content-Type", "application/json").partition(";")[0].strip().lower()
    if kind == protobuf.MEDIA_TYPE:
        return protobuf.decode(raw, subresource)
    is_patch = request.method == "PATCH" and "cbor" not in kind  # its type says how to apply it, and is checked there
    if kind and kind not in _MEDIA_TYPES and not is_patch and not any_type:
        raise unsupported_media_type(kind, ", ".join(_MEDIA_TYPES))
    return _parse(raw, may_be_yaml="yaml" in kind)


def _too_large(limit: int) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def _parse(raw: bytes, *, may_be_yaml: bool) -> Any:
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        if not may_be_yaml:
            raise bad_request(f"couldn't decode the request body as JSON: {error}") from error
    else:
        if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH:
            check_depth(body)
        return body
    try:
        read = yaml.load(raw, _YamlLoader)
        check_depth(read)
        return orjson.loads(orjson.dumps(read, option=orjson.OPT_NON_STR_KEYS))
    except (yaml.YAMLError, ValueError, TypeError) as error:  # numbers, sets or bytes that JSON does not have
        raise bad_request(f"couldn't decode the request body as YAML: {error}") from error
    except RecursionError as error:
        raise too_deep() from error


def parse_selection(target: Target, query: Query) -> Selection:
    """The selected objects of the target's kind: its namespace, and the selectors of the query."""
    labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
    return Selection(
        target.namespace,
        parse_labels(labels) if labels else None,
        parse_fields(target.kind.stored_as or target.kind, fields) if fields else (),
    )


def parse_number(query: Query, name: str) -> int:
    """A count in the query; 0 if it is absent."""
    text = query.get(name) or "0"
    if not is_number(text):
        raise bad_request(f"{name} must be a non-negative integer, not {text[:40]!r}")
    return int(text)


def is_dry_run(query: Query, body: Any) -> bool:
    """Whether this is a dry run, by the query or by the options in the body of a delete."""
    asked = query.get("dryRun")
    if asked is None and isinstance(body, dict):
        stated = body.get("dryRun")
        asked = stated[0] if isinstance(stated, list) and stated else None
    if asked not in (None, "", "All"):
        raise bad_request(f'dryRun: Unsupported value: {asked!r}: supported values: "All"')
    return asked == "All"


def parse_delete_options(query: Query, body: Any) -> Json:
    """The DeleteOptions of the body, overridden by those of the query."""
    if not isinstance(body, dict):
        raise bad_request("the body of a delete must be an object: DeleteOptions")
    options = dict(body)
    if "gracePeriodSeconds" in query:
        options["gracePeriodSeconds"] = parse_number(query, "gracePeriodSeconds")
    if "propagationPolicy" in query:
        options["propagationPolicy"] = query["propagationPolicy"]
    return options
