"""Places for names beside marks where they cover neither a mark nor each other."""

from dataclasses import dataclass, field

PIXELS_PER_CHARACTER = 6.6
LINE_PIXELS = 15
GAP = 9


@dataclass(frozen=True, slots=True)
class Box:
    """Left, right, bottom, top in pixels."""

    left: float
    right: float
    bottom: float
    top: float

    def meets(self, other: "Box") -> bool:
        """Whether both share ground."""
        apart = self.right <= other.left or other.right <= self.left
        return not (apart or self.top <= other.bottom or other.top <= self.bottom)

    def holds(self, other: "Box") -> bool:
        """Whether the other lies wholly inside."""
        across = self.left <= other.left and other.right <= self.right
        return across and self.bottom <= other.bottom and other.top <= self.top


@dataclass(frozen=True, slots=True)
class Place:
    """Where a name goes: its anchors, and its shift from the mark in pixels."""

    x_anchor: str
    y_anchor: str
    x_shift: float
    y_shift: float


PLACES = (
    Place("left", "middle", GAP, 0),
    Place("right", "middle", -GAP, 0),
    Place("left", "bottom", GAP - 3, 4),
    Place("left", "top", GAP - 3, -4),
    Place("right", "bottom", 3 - GAP, 4),
    Place("right", "top", 3 - GAP, -4),
    Place("center", "bottom", 0, GAP),
    Place("center", "top", 0, -GAP),
)
"""The best first."""


@dataclass(slots=True)
class Ground:
    """A plot on which marks and names take their ground."""

    edge: Box
    taken: list[Box] = field(default_factory=list)

    def take(self, box: Box) -> None:
        """Keep the place free from now on."""
        self.taken.append(box)

    def place(self, x: float, y: float, num_characters: int) -> Place | None:
        """A free place beside a mark, taken from now on; None where there is none."""
        for place in PLACES:
            box = _box(x + place.x_shift, y + place.y_shift, num_characters * PIXELS_PER_CHARACTER, place)
            if self.edge.holds(box) and not any(box.meets(other) for other in self.taken):
                self.take(box)
                return place
        return None


def _box(x: float, y: float, width: float, place: Place) -> Box:
    left = {"left": x, "right": x - width, "center": x - width / 2}[place.x_anchor]
    bottom = {"bottom": y, "top": y - LINE_PIXELS, "middle": y - LINE_PIXELS / 2}[place.y_anchor]
    return Box(left, left + width, bottom, bottom + LINE_PIXELS)
