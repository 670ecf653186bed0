"""`muster new-step`: the folder of a new step, with its manifests and a test on a recorded event."""

from muster.scaffold.reactions import REACTIONS, Reaction
from muster.scaffold.writing import write_step

__all__ = ["REACTIONS", "Reaction", "write_step"]
