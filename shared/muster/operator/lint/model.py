"""A fault in a manifest."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Severity(StrEnum):
    """Whether pods run in another way than the manifest says, or something deserves a look."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Fault:
    """A fault; `muster lint -o json` prints these fields.

    Attributes:
        severity: error or warning.
        file: path of the file.
        object: `Job team-a/llama`; "" if the file cannot be read.
        reason: a `muster.policy.reasons.Reason`, `UnreadableFile`, `UnknownLabel` or the like.
        message: with the path of the field.
        document: number of the document in the file, from 1; 0 if the file cannot be read.
    """

    severity: Severity
    file: str
    object: str
    reason: str
    message: str
    document: int = field(default=0, kw_only=True)

    def __str__(self) -> str:
        """The fault as one line."""
        where = f"{self.file}: {self.object}" if self.object else self.file
        return f"{self.severity}: {where}: {self.reason}: {self.message}"
