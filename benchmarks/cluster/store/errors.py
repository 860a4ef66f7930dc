"""Errors of the API server: one exception that is also a `Status` object.

Every error is an `ApiError` with the HTTP code, the machine-readable reason and the details that clients
and kubectl read. Only the functions below define messages.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import orjson

Json = dict[str, Any]


class ApiError(Exception):
    """A refusal with all fields of a `Status` object."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Json | None = None,
        metadata: Json | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata = metadata
        self.retry_after = retry_after

    def status(self) -> Json:
        """The `Status` object that is the body of the answer."""
        status: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata or {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        details = dict(self.details or {})
        if self.retry_after is not None:
            details["retryAfterSeconds"] = self.retry_after
        if details:
            status["details"] = details
        status["code"] = self.code
        return status

    def body(self) -> bytes:
        """The serialised `Status`."""
        try:
            return orjson.dumps(self.status())
        except TypeError:  # the message quotes bytes of the request that are not UTF-8
            return json.dumps(self.status(), ensure_ascii=False).encode(errors="replace")


def qualified(resource: str, group: str) -> str:
    """`deployments.apps`, or only `pods` for the core group, as messages name resources."""
    return f"{resource}.{group}" if group else resource


def _details(name: str, group: str, kind: str, **extra: Any) -> Json:
    details: Json = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    details.update(extra)
    return details


def not_found(resource: str, group: str, name: str) -> ApiError:
    """404 for an object that does not exist."""
    message = f'{qualified(resource, group)} "{name}" not found'
    return ApiError(404, "NotFound", message, details=_details(name, group, resource))


def no_such_path() -> ApiError:
    """404 for a path that this server does not serve."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(resource: str, group: str, name: str) -> ApiError:
    """409 for a create of a name that is taken."""
    message = f'{qualified(resource, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=_details(name, group, resource))


def conflict(resource: str, group: str, name: str, why: str) -> ApiError:
    """409 for an update that lost a race or fails a precondition."""
    message = f'Operation cannot be fulfilled on {qualified(resource, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, details=_details(name, group, resource))


STALE = "the object has been modified; please apply your changes to the latest version and try again"


def cause(field: str, message: str, reason: str = "FieldValueInvalid") -> Json:
    """One field error, for `invalid`."""
    return {"reason": reason, "message": message, "field": field}


def invalid_value(field: str, value: Any, why: str) -> Json:
    """The cause `field: Invalid value: ...`."""
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    shown = str(value) if plain else orjson.dumps(value).decode()
    return cause(field, f"Invalid value: {shown}: {why}")


def required(field: str, why: str = "") -> Json:
    """The cause `field: Required value`."""
    return cause(field, f"Required value: {why}" if why else "Required value", "FieldValueRequired")


def forbidden_field(field: str, why: str) -> Json:
    """The cause `field: Forbidden: ...`."""
    return cause(field, f"Forbidden: {why}", "FieldValueForbidden")


def invalid(kind: str, group: str, name: str, causes: Sequence[Json]) -> ApiError:
    """422 with one cause per field error."""
    texts = [f"{c['field']}: {c['message']}" for c in causes]
    joined = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    message = f'{qualified(kind, group)} "{name}" is invalid: {joined}'
    return ApiError(422, "Invalid", message, details=_details(name, group, kind, causes=list(causes)))


def bad_request(message: str) -> ApiError:
    """400."""
    return ApiError(400, "BadRequest", message)


def forbidden(resource: str, group: str, name: str, why: str) -> ApiError:
    """403: the request is forbidden."""
    message = f'{qualified(resource, group)} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", message, details=_details(name, group, resource))


def unauthorized() -> ApiError:
    """401."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def method_not_allowed(resource: str, group: str, verb: str) -> ApiError:
    """405."""
    message = f'{verb} is not supported on resources of kind "{qualified(resource, group)}"'
    return ApiError(405, "MethodNotAllowed", message, details=_details("", group, resource))


def unsupported_media_type(requested: str, accepted: str) -> ApiError:
    """415."""
    message = (
        f"the body of the request was in an unknown format ({requested}) - accepted media types include: {accepted}"
    )
    return ApiError(415, "UnsupportedMediaType", message)


def not_acceptable(accepted: str) -> ApiError:
    """406."""
    message = f"only the following media types are accepted: {accepted}"
    return ApiError(406, "NotAcceptable", message)


def too_many_requests(message: str, retry_after: int, causes: Sequence[Json] = ()) -> ApiError:
    """429, from flow control or from a disruption budget."""
    details: Json = {"causes": list(causes)} if causes else {}
    return ApiError(429, "TooManyRequests", message, details=details, retry_after=retry_after)


def expired(message: str, *, continue_token: str | None = None, resource_version: int = 0) -> ApiError:
    """410: the requested history is compacted; the client must list again."""
    metadata: Json | None = None
    if continue_token is not None:
        metadata = {"continue": continue_token, "resourceVersion": str(resource_version)}
    return ApiError(410, "Expired", message, metadata=metadata)


def too_large_resource_version(requested: int, current: int) -> ApiError:
    """504: the client has seen a version that this server has not reached."""
    return ApiError(
        504,
        "Timeout",
        f"Too large resource version: {requested}, current: {current}",
        details={"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]},
        retry_after=1,
    )
