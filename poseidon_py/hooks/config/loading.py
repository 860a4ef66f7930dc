"""Reads the configuration of hooks from a YAML file, and reports everything that is wrong with it at once."""

import os
import re
import ssl
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from poseidon_py.hooks.config.hook_config import MACHINES, Hook, HookConfig, Retry, Selector, words
from poseidon_py.hooks.config.sources import Source, SourceError, keys_of
from poseidon_py.util.quoting import quoted
from poseidon_py.util.yaml_fields import (
    Fields,
    InvalidValueError,
    matching,
    seconds,
    text,
    texts,
    whole_number,
)
from poseidon_py.util.yaml_file import YamlError, read_yaml

MAX_HOOKS = 64

_name = matching(
    r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", "at most 63 lower-case letters, digits and dashes, such as billing"
)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OWN_HEADERS = ("connection", "content-length", "content-type", "expect", "host", "transfer-encoding", "upgrade")
_RETRY, _HOOK = Retry(), Hook("", "")


class HookConfigError(ValueError):
    """The configuration is invalid. `problems`: each names a field by its path, what was found, and the remedy."""

    def __init__(self, path: Path, problems: list[str]) -> None:
        super().__init__(f"the hooks in {path} are invalid: {'; '.join(problems)}")
        self.path = path
        self.problems = problems


def load_hooks(path: Path, environment: Mapping[str, str] = os.environ) -> HookConfig:
    """The hooks of a file. Raises HookConfigError.

    Relative paths in it are relative to its folder. `environment`: the variables that secrets and headers may name.
    """
    problems: list[str] = []
    try:
        content = read_yaml(path)
    except YamlError as error:
        raise HookConfigError(path, [str(error)]) from error
    found = _Reader(path.parent, environment, problems).config(content)
    if problems:
        raise HookConfigError(path, problems)
    return found


class _Reader:
    """Reads one file."""

    def __init__(self, folder: Path, environment: Mapping[str, str], problems: list[str]) -> None:
        self._folder = folder
        self._environment = environment
        self._problems = problems

    def config(self, content: Any) -> HookConfig:
        fields = Fields(content, "", self._problems)
        namespace = fields.take("namespace", _name, "")
        if "hooks" not in fields:
            fields.problem("hooks", "is missing; give a list of hooks, each with a name and a url")
        hooks = [self._hook(Fields(item, path, self._problems)) for item, path in fields.each("hooks")]
        if len(hooks) > MAX_HOOKS:
            fields.problem("hooks", f"has {len(hooks)} hooks; give at most {MAX_HOOKS}")
        seen: dict[str, int] = {}
        for number, hook in enumerate(hooks):
            first = seen.setdefault(hook.name, number)
            if hook.name and first != number:
                fields.problem(f"hooks[{number}].name", f"is {hook.name!r} as of hooks[{first}]; names are unique")
        fields.end()
        return HookConfig(tuple(hooks), namespace)

    def _hook(self, fields: Fields) -> Hook:
        hook = Hook(
            name=fields.require("name", _name, "", "give a short name, such as billing"),
            url=fields.require("url", _url, "", "give the http or https URL of the endpoint"),
            on=self._selectors(fields),
            namespaces=words(fields.take("namespaces", texts(), ("*",))),
            secret=self._secret(fields),
            timeout=fields.take("timeout", seconds(0.1, 300), _HOOK.timeout),
            retry=self._retry(fields),
            headers=self._headers(fields),
            ca=self._ca(fields),
            concurrency=fields.take("concurrency", whole_number(1, 256), _HOOK.concurrency),
            max_pending=fields.take("maxPending", whole_number(1, 100_000), _HOOK.max_pending),
            max_dead=fields.take("maxDead", whole_number(0, 10_000), _HOOK.max_dead),
        )
        if hook.ca is not None and hook.url.startswith("http:"):
            fields.problem("ca", "is for https, and url is http; give an https URL, or drop ca")
        fields.end()
        return hook

    def _selectors(self, fields: Fields) -> tuple[Selector, ...]:
        if "on" not in fields:
            fields.take("on", text, "")
            return _HOOK.on
        return tuple(self._selector(Fields(item, path, self._problems)) for item, path in fields.each("on"))

    @staticmethod
    def _selector(fields: Fields) -> Selector:
        found = Selector(
            words(fields.take("machine", texts(MACHINES), ("*",))),
            words(fields.take("before", texts(), ("*",))),
            words(fields.take("after", texts(), ("*",))),
        )
        fields.end()
        return found

    @staticmethod
    def _retry(fields: Fields) -> Retry:
        nested = fields.nested("retry")
        if nested is None:
            return _RETRY
        found = Retry(
            nested.take("attempts", whole_number(1, 1000), _RETRY.attempts),
            nested.take("first", seconds(0.01, 3600), _RETRY.first),
            nested.take("longest", seconds(0.01, 86_400), _RETRY.longest),
        )
        if found.first > found.longest:
            nested.problem("first", f"is {found.first:g} s, more than longest ({found.longest:g} s); give less")
        nested.end()
        return found

    def _secret(self, fields: Fields) -> Source | None:
        if "secret" not in fields:
            fields.take("secret", text, "")
            return None
        found = fields.take("secret", self._source, None)
        if found is not None:
            try:
                keys_of(found)
            except SourceError as error:
                fields.problem("secret", str(error))
        return found

    def _source(self, value: Any) -> Source:
        """A file or an environment variable."""
        remedy = "give {file: PATH} or {env: NAME}, so that the value stays out of this file"
        if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in ("file", "env"):
            shown = "a text" if isinstance(value, str) else "not one of file and env"
            raise InvalidValueError(f"is {shown}; {remedy}")
        ((kind, where),) = value.items()
        if not isinstance(where, str) or not where:
            raise InvalidValueError(f"has {kind} {quoted(where)}; {remedy}")
        if kind == "env":
            return Source(variable=where, environment=self._environment)
        return Source(file=self._folder / where)

    def _headers(self, fields: Fields) -> tuple[tuple[str, Source], ...]:
        nested = fields.nested("headers")
        if nested is None:
            return ()
        found = ((name, nested.take(name, partial(self._header, name), None)) for name in nested.names())
        return tuple((name, source) for name, source in found if source is not None)

    def _header(self, name: str, value: Any) -> Source:
        if not _HEADER.fullmatch(name):
            raise InvalidValueError("is not the name of a header; give letters, digits and dashes")
        if name.lower() in _OWN_HEADERS or name.lower().startswith("poseidon-"):
            raise InvalidValueError("is set by the sender; drop it")
        source = Source(text=value) if isinstance(value, str) else self._source(value)
        try:
            line = source.read()[0]
        except SourceError as error:
            raise InvalidValueError(str(error)) from error
        if not line.isprintable() or not line.isascii():
            raise InvalidValueError("has a value that is not printable ASCII text; give one line of it")
        return source

    def _ca(self, fields: Fields) -> Path | None:
        given = fields.take("ca", text, "")
        if not given:
            return None
        path = self._folder / given
        try:
            ssl.create_default_context().load_verify_locations(path)
        except OSError as error:  # of which SSLError is one
            reason = getattr(error, "reason", None) or error.strerror
            fields.problem("ca", f"{path} cannot be used ({reason}); give a file of PEM certificates")
        return path


def _url(value: Any) -> str:
    try:
        url = text(value)
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidValueError(
            f"is {quoted(value)}; give an http or https URL, such as https://billing.example.com/events"
        )
    if parts.username is not None or parts.password is not None:
        raise InvalidValueError("has a user or a password; give them as a header with {file: PATH} or {env: NAME}")
    if parts.fragment:
        raise InvalidValueError("has a fragment (#...), which is never sent; drop it")
    return url
