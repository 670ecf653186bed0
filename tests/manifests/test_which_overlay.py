"""eventing/README.md says which overlay a cluster needs; here each row is held to what the overlay is."""

from __future__ import annotations

import re

import pytest

from muster.data import EVENTING
from muster.kustomize import CLUSTER, Manifest, load, of_kind

OVERLAYS = EVENTING / "overlays"
ROW = re.compile(r"^\| (?P<cluster>.+) \| `(?P<overlay>[^`]+)` \|$", re.MULTILINE)
ROWS = {row["overlay"]: row["cluster"] for row in ROW.finditer((EVENTING / "README.md").read_text())}


def test_each_kind_of_cluster_has_an_overlay() -> None:
    """The two releases, and each alpha gate that changes what is installed."""
    assert set(ROWS) == {"cluster", "composite-pod-groups", "native-jobs", "kubernetes-1.36"}


@pytest.mark.parametrize(
    ("overlay", "versions"),
    [
        ("cluster", {"v1beta1"}),
        ("composite-pod-groups", {"v1beta1", "v1alpha3"}),
        ("native-jobs", {"v1beta1"}),
        ("kubernetes-1.36", {"v1alpha2"}),
    ],
)
def test_a_row_names_the_versions_that_the_overlays_sources_need(overlay: str, versions: set[str]) -> None:
    """A source of a version that is not served restarts for ever, so the table has to say it.

    A row that says `also` adds to the first one.
    """
    assert _watched(load(OVERLAYS / overlay)) == versions
    words = ROWS[overlay] if not ROWS[overlay].startswith("also") else ROWS["cluster"] + ROWS[overlay]
    assert set(re.findall(r"v1(?:alpha|beta)\d", words)) == versions


@pytest.mark.parametrize("overlay", sorted(set(ROWS) - {"cluster"}))
def test_an_overlay_differs_from_cluster_only_as_its_row_says(overlay: str) -> None:
    """Functions, triggers and roles are the same in each, so that going from one to another moves no job."""
    here, cluster = load(OVERLAYS / overlay), load(CLUSTER)
    differing = {manifest["kind"] for manifest in here if manifest not in cluster} | {
        manifest["kind"] for manifest in cluster if manifest not in here
    }
    policies = {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}
    assert differing == (policies if overlay == "native-jobs" else {"ApiServerSource"})


def _watched(objects: list[Manifest]) -> set[str]:
    kinds = [kind for source in of_kind(objects, "ApiServerSource") for kind in source["spec"]["resources"]]
    return {
        version
        for group, _, version in (kind["apiVersion"].rpartition("/") for kind in kinds)
        if group == "scheduling.k8s.io"
    }
