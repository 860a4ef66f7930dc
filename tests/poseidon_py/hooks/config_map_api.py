"""ConfigMaps as an API server has them: versions, preconditions, label selectors, pages. Faults on demand."""

import json
from itertools import count

from poseidon_py.kube.client import BusyError, ConflictError, LostAnswerError, NotFoundError

FOLDER = "/api/v1/namespaces/hooks/configmaps"


class ConfigMapApi:
    def __init__(self):
        self.objects = {}
        self.versions = count(1)
        self.faults = []
        """For the next requests that write: "", "refused" or "lost"."""
        self.log = []
        self.page_size = 2

    async def call(self, verb, path, body=b"", content_type="", timeout=30.0):
        self.log.append((verb, path.rpartition("/")[2]))
        if verb != "GET":
            fault = self.faults.pop(0) if self.faults else ""
            if fault == "refused":
                raise BusyError(503, "", "overloaded")
            answer = self._change(verb, path, json.loads(body))
            if fault == "lost":
                raise LostAnswerError("connection reset")
            return answer
        return self._answer(self._found(path))

    async def page(self, path, parameters):
        assert path == FOLDER
        key, _, value = parameters["labelSelector"].partition("=")
        every = [
            each
            for _, each in sorted(self.objects.items())
            if key in each["metadata"]["labels"] and value in ("", each["metadata"]["labels"][key])
        ]
        start = int(parameters.get("continue", "0"))
        end = start + self.page_size
        metadata = {"continue": str(end)} if end < len(every) else {}
        return json.dumps({"metadata": metadata, "items": every[start:end]}).encode()

    def _found(self, path):
        name = path.removeprefix(FOLDER + "/")
        if name not in self.objects:
            raise NotFoundError(404, "NotFound", f"configmaps {name!r} not found")
        return self.objects[name]

    def _change(self, verb, path, body):
        if verb == "POST":
            name = body["metadata"]["name"]
            if name in self.objects:
                raise ConflictError(409, "AlreadyExists", name)
            body["metadata"].setdefault("labels", {})
            self.objects[name] = body
            return self._store(body)
        found = self._found(path)
        given = body.get("preconditions", {}) if verb == "DELETE" else body.get("metadata", {})
        if given.get("resourceVersion") not in (None, found["metadata"]["resourceVersion"]):
            raise ConflictError(409, "Conflict", "changed")
        if verb == "DELETE":
            del self.objects[found["metadata"]["name"]]
            return b"{}"
        found["metadata"].setdefault("annotations", {}).update(given.get("annotations", {}))
        data = found.setdefault("data", {})
        for key, text in body.get("data", {}).items():
            if text is None:
                data.pop(key, None)
            else:
                data[key] = text
        return self._store(found)

    def _store(self, found):
        found["metadata"]["resourceVersion"] = str(next(self.versions))
        return self._answer(found)

    @staticmethod
    def _answer(found):
        return json.dumps(found).encode()
