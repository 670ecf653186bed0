"""What can be done to a stream of events before it is delivered; all of it comes out the same each time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

One = TypeVar("One")


@dataclass(frozen=True)
class Arrangement:
    """How a stream is delivered.

    Attributes:
        without: numbers of events that are left out, from 1.
        reverse: the last one first.
        duplicates: so many more of each event, right after it.
        twice: the whole stream a second time.
        shuffle: seed of an order by chance; None leaves the order as it is.
    """

    without: tuple[int, ...] = ()
    reverse: bool = False
    duplicates: int = 0
    twice: bool = False
    shuffle: int | None = None

    def of(self, stream: Sequence[One]) -> list[One]:
        """The stream arranged.

        Raises:
            LookupError: there is no event of a number that is to be left out.
        """
        for number in self.without:
            if not 1 <= number <= len(stream):
                raise LookupError(f"--without {number}: there are {len(stream)} events")
        left = [one for number, one in enumerate(stream, start=1) if number not in self.without]
        ordered = left[::-1] if self.reverse else left
        arranged = [one for one in ordered for _ in range(1 + self.duplicates)] * (1 + self.twice)
        if self.shuffle is not None:
            random.Random(self.shuffle).shuffle(arranged)  # noqa: S311 - an order that can be had again
        return arranged
