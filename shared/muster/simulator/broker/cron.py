"""The schedules of PingSources: five cron fields, which cronsim reads, or `@every`.

Knative's robfig/cron differs in two corners: there a day field such as `*/2` is no star, so that either day
field may match; and a time that the clocks skip in spring is left out, where here it comes after the gap.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from muster.kustomize import UnsupportedManifestError
from muster.simulator.broker.delivery import seconds_of

_FIELDS = ("minute", "hour", "day-of-month", "month", "day-of-week")
_CRONSIM_ALONE = re.compile(r"(?<!JU)L|#|\b(\w+)-\1/")
"""The last day and the nth weekday, which Knative refuses, and `5-5/10`, which it reads differently."""
_SUNDAY_AS_SEVEN = re.compile(r"(?<!/)\b0*7\b")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Schedule:
    """When a timer fires: at the minutes that cron fields allow in a time zone, or after every `every`."""

    fields: str = ""
    timezone: tzinfo = UTC
    every: timedelta = timedelta()

    @classmethod
    def parse(cls, text: str, timezone: str = "") -> Schedule:
        """Return the schedule of a text such as `* * * * *`, `*/5 8-17 * * MON-FRI` or `@every 30s`.

        Knative takes the five fields and words such as `@hourly` (not read here), and refuses `@every`.

        Raises:
            UnsupportedManifestError: a field or the time zone cannot be read, or allows no day at all.
        """
        if text.startswith("@every "):
            return cls(every=_every(text))
        _check(text)
        try:
            CronSim(text, _EPOCH)
        except (CronSimError, ValueError) as error:  # a number may have too many digits
            raise UnsupportedManifestError(f"schedule {text!r}: {error}") from error
        return cls(text, _zone(timezone) if timezone else UTC)

    def next_after(self, moment: datetime) -> datetime:
        """Return the first time after `moment`, in the time zone of `moment`."""
        if self.every:
            return moment + self.every
        simulation = CronSim(self.fields, moment.astimezone(self.timezone))
        simulation.weekdays.discard(7)  # Sunday is 0; `5/2` ends with Saturday
        return next(simulation).astimezone(moment.tzinfo)


def _every(text: str) -> timedelta:
    try:
        seconds = seconds_of("PT" + text.removeprefix("@every ").strip().upper())
    except UnsupportedManifestError as error:
        raise UnsupportedManifestError(f"schedule {text!r}: {error}") from error
    if not seconds:
        raise UnsupportedManifestError(f"schedule {text!r} leaves no time between two events")
    return timedelta(seconds=seconds)


def _check(text: str) -> None:
    fields = text.upper().split()
    if len(fields) != len(_FIELDS):
        raise UnsupportedManifestError(f"schedule {text!r} has not five fields")
    for name, field in zip(_FIELDS, fields, strict=True):
        if _CRONSIM_ALONE.search(field) or (name == _FIELDS[-1] and _SUNDAY_AS_SEVEN.search(field)):
            raise UnsupportedManifestError(f"schedule {text!r}: Bad {name}")


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise UnsupportedManifestError(f"timezone {name!r} is not known on this machine") from error
