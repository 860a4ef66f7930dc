"""Tokens of ServiceAccounts, and what RBAC lets them do. Requests without one are those of an administrator."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.cluster.api.device_rules.field_checks import same
from benchmarks.cluster.api.verbs import Api
from benchmarks.cluster.http.paths import Target
from benchmarks.cluster.store.device_kinds import GROUP as DEVICE_GROUP
from benchmarks.cluster.store.errors import ApiError, forbidden_field, invalid
from benchmarks.cluster.store.kinds import RBAC, SERVICE_ACCOUNTS, Kind
from benchmarks.cluster.store.store import Record

Json = dict[str, Any]

_PREFIX = "account."
_CLUSTER_ROLES, _CLUSTER_BINDINGS, _ROLES, _BINDINGS = RBAC
_SECONDS = 3600


class Accounts:
    """`issue` tokens, `user_of` a request, `permit` what it asks for."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._users: dict[str, str] = {}
        self._answers: dict[tuple[str, ...], bool] = {}
        for kind in RBAC:
            api.store.subscribe(kind, lambda _: self._answers.clear())

    def issue(self, namespace: str, name: str) -> Json:
        """A TokenRequest with a new token of a ServiceAccount. Raises ApiError 404."""
        self._api.get(SERVICE_ACCOUNTS, namespace, name)
        token = _PREFIX + secrets.token_urlsafe(24)
        self._users[token] = f"system:serviceaccount:{namespace}:{name}"
        ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + _SECONDS))
        about = {"name": name, "namespace": namespace}
        status = {"token": token, "expirationTimestamp": ends}
        return {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": about, "status": status}

    def user_of(self, authorization: str) -> str:
        """The account of a header Authorization; empty: it has no token of one. Raises ApiError 401."""
        token = authorization.removeprefix("Bearer ")
        if not token.startswith(_PREFIX):
            return ""
        user = self._users.get(token)
        if user is None:
            raise ApiError(401, "Unauthorized", "Unauthorized")
        return user

    def permit(self, user: str, verb: str, target: Target, fields: str = "") -> None:
        """Raises ApiError 403 if no rule allows the request. `fields`: its field selector, which can name one object of
        a collection: rules for that name allow the request then."""
        resource = f"{target.kind.plural}/{target.subresource}" if target.subresource else target.kind.plural
        group, namespace, name = target.kind.group, target.namespace, target.name or _selected(fields)
        if not self._allowed(user, verb, group, resource, namespace, name):
            where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
            raise ApiError(
                403,
                "Forbidden",
                f'{target.kind.plural} is forbidden: User "{user}" cannot {verb} resource "{resource}" in API group '
                f'"{group}" {where}',
            )

    def permit_binding(self, user: str, verb: str, target: Target, write: Callable[[], Record]) -> None:
        """Of a claim's status, allocation and reservedFor are written with the right to `resourceclaims/binding` only
        (feature gate DRAResourceClaimGranularStatusAuthorization). `write`: what the claim would be. Raises ApiError
        422, as the API server does."""
        kind, namespace, name = target.kind, target.namespace, target.name
        if (kind.group, kind.kind, target.subresource) != (DEVICE_GROUP, "ResourceClaim", "status"):
            return
        if self._allowed(user, verb, kind.group, "resourceclaims/binding", "", ""):
            return
        before, after = (one.parse().get("status") or {} for one in (self._api.get(kind, namespace, name), write()))
        if all(same(before.get(field), after.get(field)) for field in ("allocation", "reservedFor")):
            return
        denied = (
            f'{kind.plural}.{kind.group} "{name}" is forbidden: User "{user}" cannot {verb} resource '
            f'"resourceclaims/binding" in API group "{kind.group}" at the cluster scope'
        )
        why = (
            'changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", '
            f'verb="{verb}" permission: {denied}'
        )
        raise invalid(kind.kind, kind.group, name, [forbidden_field("status.allocation", why)])

    def review(self, kind: Kind, question: Json) -> Json:
        """The status of an access review: whose token it is, or whether a user may do something."""
        spec = question.get("spec") or {}
        if kind.kind == "TokenReview":
            user = self._users.get(spec.get("token", ""))
            if user is None:
                return {"authenticated": False}
            groups = ["system:serviceaccounts", "system:authenticated"]
            return {"authenticated": True, "user": {"username": user, "groups": groups}}
        user = str(spec.get("user", ""))
        if not user.startswith("system:serviceaccount:"):
            return {"allowed": True}
        if (asked := spec.get("resourceAttributes")) is not None:
            parts = [asked.get(part) or "" for part in ("group", "resource", "subresource", "namespace", "name")]
            group, plural, subresource, namespace, name = parts
            resource = f"{plural}/{subresource}" if subresource else plural
            return {"allowed": self._allowed(user, asked.get("verb") or "", group, resource, namespace, name)}
        asked = spec.get("nonResourceAttributes") or {}
        return {
            "allowed": any(
                _has_path(rule.get("nonResourceURLs") or [], asked.get("path") or "")
                and _has(rule["verbs"], asked.get("verb") or "")
                for rule, _ in self._rules(user, "")
            )
        }

    def _allowed(self, user: str, verb: str, group: str, resource: str, namespace: str, name: str) -> bool:
        key = (user, verb, group, resource, namespace, name)
        if key not in self._answers:
            self._answers[key] = any(
                _has(rule.get("verbs"), verb)
                and _has(rule.get("apiGroups"), group)
                and _has(rule.get("resources"), resource)
                and (not rule.get("resourceNames") or name in rule["resourceNames"])
                for rule, _ in self._rules(user, namespace)
            )
        return self._answers[key]

    def _rules(self, user: str, namespace: str) -> Iterator[tuple[Json, Json]]:
        """The rules for an account in a namespace, or in the whole cluster, and their bindings."""
        for kind, within in ((_CLUSTER_BINDINGS, ""), (_BINDINGS, namespace)):
            if kind is _BINDINGS and not namespace:
                continue
            for record in self._api.store.collection(kind).records(within):
                binding = record.parse()
                if user not in map(_subject, binding.get("subjects") or ()):
                    continue
                reference = binding["roleRef"]
                role = _ROLES if reference["kind"] == "Role" else _CLUSTER_ROLES
                found = self._api.store.get(role, within if role is _ROLES else "", reference["name"])
                for rule in (found.parse().get("rules") or ()) if found is not None else ():
                    yield rule, binding


def _selected(fields: str) -> str:
    """The name that a field selector requires; empty: any."""
    terms = (term.partition("=") for term in fields.split(","))
    return next((value.removeprefix("=") for key, _, value in terms if key.strip() == "metadata.name"), "")


def _subject(subject: Json) -> str:
    return f"system:serviceaccount:{subject.get('namespace', '')}:{subject.get('name', '')}"


def _has_path(patterns: list[str], path: str) -> bool:
    """A pattern may end with an asterisk, which stands for any number of characters."""
    return any(path == each or (each.endswith("*") and path.startswith(each[:-1])) for each in patterns)


def _has(values: list[str] | None, value: str) -> bool:
    return values is not None and (value in values or "*" in values)
