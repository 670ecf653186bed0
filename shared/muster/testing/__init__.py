"""Test helpers for steps: recordings, cases, plans and laws. The fixtures are in `muster.pytest_plugin`."""

from muster.testing.cases import Case, Planned, change, plan_of, reply, sweep
from muster.testing.clusters import Delivered, EmbeddedCluster, RunningStack
from muster.testing.fixtures import CompareGolden, ReadRecording
from muster.testing.laws import LAWS, check_laws
from muster.testing.manifests import check_manifests, load_step
from muster.testing.recordings import Recording, shipped

__all__ = [
    "LAWS",
    "Case",
    "CompareGolden",
    "Delivered",
    "EmbeddedCluster",
    "Planned",
    "ReadRecording",
    "Recording",
    "RunningStack",
    "change",
    "check_laws",
    "check_manifests",
    "load_step",
    "plan_of",
    "reply",
    "shipped",
    "sweep",
]
