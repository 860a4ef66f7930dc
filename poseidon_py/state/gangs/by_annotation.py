"""Conventions that say everything on the pods themselves."""

import msgspec

from poseidon_py.state.gangs import keys as m
from poseidon_py.state.gangs.model import MOST, Declaration, GangHints, Invalid, Objects, whole
from poseidon_py.util.decoding import Decoder, MalformedError


class LightLabels:
    """The coscheduling plug-in's first form: two labels, no object."""

    name = "pod-group labels"

    def read(self, marks: GangHints, objects: Objects) -> Declaration | None:
        group = marks.labels.get(m.LIGHT_NAME)
        if not group:
            return None
        text = marks.labels.get(m.LIGHT_MINIMUM)
        if text is None:
            raise Invalid(f"label {m.LIGHT_MINIMUM}: is missing; say how many pods the group needs")
        minimum = whole(text, f"label {m.LIGHT_MINIMUM}")
        return Declaration(self.name, f"light/{marks.namespace}/{group}", f"{marks.namespace}/{group}", minimum)


class BatchAnnotations:
    """group-name and group-pod-num: all of the pods, or none. A number of 0 means an ordinary pod."""

    name = "group-pod-num annotations"

    def read(self, marks: GangHints, objects: Objects) -> Declaration | None:
        group, text = marks.annotations.get(m.GROUP_NAME), marks.annotations.get(m.GROUP_NUMBER)
        if not group or text is None:
            return None  # the name alone is Volcano's
        size = whole(text, f"annotation {m.GROUP_NUMBER}", least=0)
        if size == 0:
            return None
        return Declaration(self.name, f"batch/{marks.namespace}/{group}", f"{marks.namespace}/{group}", size, size=size)


class Kueue:
    """Pods that Kueue admits together."""

    name = "Kueue"

    def read(self, marks: GangHints, objects: Objects) -> Declaration | None:
        group = marks.labels.get(m.KUEUE_NAME)
        if not group:
            return None
        text = marks.annotations.get(m.KUEUE_COUNT)
        if text is None:
            raise Invalid(f"annotation {m.KUEUE_COUNT}: is missing; say how many pods the group has")
        size = whole(text, f"annotation {m.KUEUE_COUNT}")
        name = f"{marks.namespace}/{group}"
        return Declaration(self.name, f"kueue/{name}", name, size, maximum=size, size=size)


class LeaderWorkerSet:
    """A leader and its workers: each replica of the set is a gang."""

    name = "LeaderWorkerSet"

    def read(self, marks: GangHints, objects: Objects) -> Declaration | None:
        text = marks.annotations.get(m.LWS_SIZE)
        if text is None:
            return None
        group = marks.labels.get(m.LWS_KEY)
        owner, index = marks.labels.get(m.LWS_NAME), marks.labels.get(m.LWS_INDEX)
        if owner and index:
            group = f"{owner}-{index}"
        if not group:
            raise Invalid(f"label {m.LWS_INDEX}: is missing, as is {m.LWS_KEY}; one of them has to name the group")
        size = whole(text, f"annotation {m.LWS_SIZE}")
        return Declaration(self.name, f"lws/{marks.namespace}/{group}", f"{marks.namespace}/{group}", size, size=size)


class _TaskGroup(msgspec.Struct):
    name: str
    minimum: int = msgspec.field(default=0, name="minMember")


_task_groups: Decoder[list[_TaskGroup]] = Decoder(list[_TaskGroup], f"annotation {m.YUNIKORN_GROUPS}")


class YuniKorn:
    """Task groups of an application.

    Each task group is a gang of its own: members of one are often made by those of another, as executors by their
    driver, so that a gang of all could never begin. Often one pod alone describes all groups.
    """

    name = "YuniKorn"

    def read(self, marks: GangHints, objects: Objects) -> Declaration | None:
        text, mine = marks.annotations.get(m.YUNIKORN_GROUPS), marks.annotations.get(m.YUNIKORN_NAME)
        if text is None and not mine:
            return None
        words = {**marks.annotations, **marks.labels}
        app = next((words[key] for key in m.YUNIKORN_APP if words.get(key)), "")
        if not app:
            raise Invalid(f"label {m.YUNIKORN_APP[0]}: is missing; it says to which application the task group belongs")
        groups = self._groups(text)
        key = f"yunikorn/{marks.namespace}/{app}/"
        announced = tuple((key + name, minimum) for name, minimum in groups.items() if name != mine)
        if not mine:
            return Declaration(self.name, "", "", 0, announced=announced)
        if groups and mine not in groups:
            raise Invalid(f"annotation {m.YUNIKORN_NAME}: {mine!r} is not among the task groups {', '.join(groups)}")
        name = f"{marks.namespace}/{app}/{mine}"
        waits = "" if groups else f"task group {name}: no pod of its application describes it yet"
        return Declaration(self.name, key + mine, name, groups.get(mine, 0), announced=announced, waits=waits)

    def _groups(self, text: str | None) -> dict[str, int]:
        if text is None:
            return {}
        try:
            groups = _task_groups.decode(text)
        except MalformedError as error:
            raise Invalid(str(error)) from error
        if any(group.minimum < 0 for group in groups):
            raise Invalid(f"annotation {m.YUNIKORN_GROUPS}: a minMember is below 0")
        if any(group.minimum > MOST for group in groups):
            raise Invalid(f"annotation {m.YUNIKORN_GROUPS}: a minMember is more than {MOST}")
        return {group.name: group.minimum for group in groups}
