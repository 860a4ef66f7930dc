"""How texts are spread over segments, each of which is one object of the API server. No I/O.

New texts go to the last segment until that is full, so that a write changes one object, of limited size, however much
is stored. A full segment of which little is left is emptied into the last one, so that the number of objects is limited
by the size of what is stored.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

SEGMENT_BYTES = 256 << 10
"""Size at which a segment is full. An object of the API server has at most 1 MiB."""
_LOW_FRACTION = 4


@dataclass(slots=True)
class Segment:
    """One object. `dirty`: keys whose texts differ from those of the object, as far as is known."""

    number: int
    version: str = ""
    """Resource version of the object; empty: it does not exist."""
    texts: dict[str, str] = field(default_factory=dict)
    dirty: set[str] = field(default_factory=set)
    size: int = 0

    def set(self, key: str, text: str | None) -> None:
        """None: remove."""
        before = self.texts.pop(key, None)
        if before is not None:
            self.size -= _size(key, before)
        if text is not None:
            self.texts[key] = text
            self.size += _size(key, text)
        if text != before:
            self.dirty.add(key)

    def changes(self) -> dict[str, str | None]:
        """The texts of the dirty keys."""
        return {key: self.texts.get(key) for key in sorted(self.dirty)}

    def compare(self, found: Mapping[str, str]) -> None:
        """The object has these texts: the keys that differ are dirty."""
        keys = self.texts.keys() | found.keys()
        self.dirty = {key for key in keys if self.texts.get(key) != found.get(key)}


class Segments:
    """All segments of a store, by number; the last one takes new texts."""

    def __init__(self, limit: int = SEGMENT_BYTES) -> None:
        self._limit = limit
        self._segments: dict[int, Segment] = {}
        self._segment_of: dict[str, Segment] = {}

    def __contains__(self, number: int | None) -> bool:
        return number in self._segments

    def __len__(self) -> int:
        return len(self._segments)

    def texts(self) -> dict[str, str]:
        """All texts by key."""
        return {key: segment.texts[key] for key, segment in self._segment_of.items()}

    def add(self, segment: Segment) -> dict[str, str]:
        """A segment that exists. Returns the texts of keys that are new.

        If a key is in several segments, a move was interrupted: the last one is newer.
        """
        added: dict[str, str] = {}
        for key, text in segment.texts.items():
            segment.size += _size(key, text)
            other = self._segment_of.get(key)
            if other is None:
                added[key] = text
        for key in list(segment.texts):
            other = self._segment_of.get(key)
            if other is not None and other.number > segment.number:
                segment.set(key, None)
                continue
            if other is not None:
                other.set(key, None)
            self._segment_of[key] = segment
        self._segments[segment.number] = segment
        return added

    def set(self, key: str, text: str | None) -> None:
        """None: remove."""
        segment = self._segment_of.get(key)
        if text is None:
            if segment is not None:
                segment.set(key, None)
                del self._segment_of[key]
            return
        if segment is None:
            segment = self._segment_of[key] = self._open(_size(key, text))
        segment.set(key, text)

    def compact(self) -> None:
        """Empty the full segments of which little is left into the last one."""
        last = self.last
        for segment in list(self._segments.values()):
            if segment is not last and segment.texts and segment.size * _LOW_FRACTION < self._limit:
                for key, text in list(segment.texts.items()):
                    self.set(key, None)
                    self.set(key, text)

    def unwritten(self) -> Iterator[Segment]:
        """Segments that differ from their objects: first those that get texts, then those that only lose some, so that
        a text that moves is never in neither."""
        dirty = [each for each in self._segments.values() if each.dirty or self.is_empty(each) or not each.version]
        yield from sorted(dirty, key=lambda each: (not each.texts.keys() & each.dirty, each.number))

    def is_empty(self, segment: Segment) -> bool:
        """Whether the object of the segment is to be deleted."""
        return not segment.texts and segment is not self.last

    def remove(self, segment: Segment) -> None:
        """Its object is gone, and it was empty."""
        del self._segments[segment.number]

    def renumber(self, segment: Segment) -> None:
        """Its number is that of another object."""
        del self._segments[segment.number]
        segment.number = 1 + max(segment.number, *self._segments, 0)
        self._segments[segment.number] = segment

    @property
    def last(self) -> Segment | None:
        return self._segments[max(self._segments)] if self._segments else None

    def open_one(self) -> None:
        """There is a segment from now on."""
        self._open(0)

    def _open(self, size: int) -> Segment:
        """The last segment, or a new one if that is full."""
        last = self.last
        if last is None or (last.size and last.size + size > self._limit):
            last = Segment(1 + (last.number if last else 0))
            self._segments[last.number] = last
        return last


def _size(key: str, text: str) -> int:
    return len(key) + len(text.encode()) + 8
