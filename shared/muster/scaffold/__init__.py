"""`muster new-step`: the folder of a new step, with its manifests and a test on a recorded event."""

from muster.scaffold.reactions import REACTIONS, EventKind
from muster.scaffold.writing import owner_of, write_step

__all__ = ["REACTIONS", "EventKind", "owner_of", "write_step"]
