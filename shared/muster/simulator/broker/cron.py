"""The cron schedules of PingSources, as far as sweeps need them: five fields, or `@every`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from muster.manifests import UnsupportedManifestError
from muster.simulator.broker.delivery import seconds_of

_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 6))
_HORIZON = timedelta(days=366 * 4 + 1)
"""Far enough for 29 February; a schedule without a day in it never comes."""


@dataclass(frozen=True)
class Schedule:
    """When a timer fires: every so many seconds, or at the minutes that all five fields allow."""

    every: float = 0.0
    allowed: tuple[frozenset[int], ...] = ()
    days_are_alternatives: bool = False

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """A schedule such as `* * * * *`, `*/5 8-17 * * 1-5` or `@every 30s`.

        Raises:
            UnsupportedManifestError: names of months and days, and the other @ words, are not read here.
        """
        if text.startswith("@every "):
            return cls(every=seconds_of("PT" + text.removeprefix("@every ").strip().upper()))
        parts = text.split()
        if len(parts) != len(_FIELDS):
            raise UnsupportedManifestError(f"schedule {text!r} has not five fields")
        allowed = tuple(_values(part, low, high) for part, (_, low, high) in zip(parts, _FIELDS, strict=True))
        # Day and weekday are alternatives when both are restricted: cron's oldest surprise.
        return cls(
            allowed=allowed,
            days_are_alternatives=not parts[2].startswith("*") and not parts[4].startswith("*"),
        )

    def next_after(self, moment: datetime) -> datetime:
        """The first time after `moment`; in its time zone.

        Raises:
            UnsupportedManifestError: there is none within four years.
        """
        if self.every:
            return moment + timedelta(seconds=self.every)
        candidate = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
        while candidate - moment < _HORIZON:
            if not self._day_matches(candidate):
                candidate = candidate.replace(hour=0, minute=0) + timedelta(days=1)
            elif candidate.hour in self.allowed[1] and candidate.minute in self.allowed[0]:
                return candidate
            else:
                candidate += timedelta(minutes=1)
        raise UnsupportedManifestError("the schedule of a PingSource never comes")

    def _day_matches(self, moment: datetime) -> bool:
        _, _, days, months, weekdays = self.allowed
        day, weekday = moment.day in days, moment.isoweekday() % 7 in weekdays
        return moment.month in months and (day or weekday if self.days_are_alternatives else day and weekday)


def _values(part: str, low: int, high: int) -> frozenset[int]:
    found: set[int] = set()
    for piece in part.split(","):
        span, _, step = piece.partition("/")
        first, _, last = span.partition("-")
        try:
            start = low if span == "*" else int(first)
            stop = high if span == "*" or (step and not last) else int(last or first)
            found.update(range(start, stop + 1, int(step or 1)))
        except ValueError as error:
            raise UnsupportedManifestError(f"{part!r} is no field of a schedule that is read here") from error
    if not found or not found <= set(range(low, high + 1)):
        raise UnsupportedManifestError(f"{part!r} is outside {low} to {high}")
    return frozenset(found)
