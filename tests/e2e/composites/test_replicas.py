"""Groups of groups per replica: a leader in each, and three levels of topology with several racks."""

from __future__ import annotations

import copy

import pytest

from muster.data import EVENTING
from muster.replay.snapshots import read_snapshots
from muster.replay.summary import group_of
from tests.e2e.support.muster import Muster
from tests.e2e.support.owners import Object, a_job, with_policy
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OVERLAY = "composite-pod-groups"

ZONE, RACK, HOST = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack", "kubernetes.io/hostname"

BLOCKS = f"""
workload:
  groups:
  - name: zone
    schedulingConstraints: {{topology: [{{key: {ZONE}}}]}}
    groups:
    - name: rack
      size: 4
      schedulingConstraints: {{topology: [{{key: {RACK}}}]}}
      groups:
      - name: host
        size: 2
        schedulingConstraints: {{topology: [{{key: {HOST}}}]}}
"""


def replicas() -> Object:
    """The example: two replicas of a leader and four workers."""
    objects = read_snapshots([EVENTING / "examples" / "replicas-in-racks.yaml"])[0].objects
    (jobset,) = (obj for obj in objects if obj["kind"] == "JobSet")
    return copy.deepcopy(jobset)


def add_rack(story: RealStory, zone: str, rack: str, hosts: int, *, cpu: int = 4) -> None:
    """Add the hosts of a rack."""
    story.add_nodes(hosts, cpu=cpu, labels={ZONE: zone, RACK: rack})


def places(story: RealStory, key: str) -> dict[str, set[str]]:
    """The values of a node label under the pods of each PodGroup, by group and instance suffix."""
    found: dict[str, set[str]] = {}
    for pod in story.pods():
        if pod["spec"].get("nodeName"):
            node = story.api.must("GET", f"/api/v1/nodes/{pod['spec']['nodeName']}")
            found.setdefault(short(group_of(pod)), set()).add(node["metadata"]["labels"][key])
    return found


def short(name: str) -> str:
    """`workers-1` for `serve-workers-1a2b3c4d-1`."""
    owner_and_group, _, suffix = name.partition(f"-{uid_in(name)}")
    return owner_and_group.split("-", 1)[1] + suffix


def uid_in(name: str) -> str:
    """The eight characters of a UID in the name of a group."""
    return next(part for part in name.split("-") if len(part) == 8 and not part.isalpha())


def min_group_counts(story: RealStory) -> dict[str, int]:
    """The minGroupCount of each CompositePodGroup."""
    groups = story.recording.now("CompositePodGroup").items()
    return {short(name): group["spec"]["schedulingPolicy"]["gang"]["minGroupCount"] for name, group in groups}


def parents(story: RealStory) -> dict[str, str]:
    """The group above each group."""
    groups = {**story.recording.now("CompositePodGroup"), **story.groups()}
    above = {name: body["spec"].get("parentCompositePodGroupName", "") for name, body in groups.items()}
    return {short(name): short(parent) if parent else "" for name, parent in above.items()}


def test_no_replica_runs_without_the_other(story: RealStory) -> None:
    """A zone with one rack that is large enough: no pod runs. With a second rack in it all run."""
    add_rack(story, "zone-0", "rack-0", 2)
    add_rack(story, "zone-1", "rack-1", 2)
    story.create(replicas())
    story.wait("no gate is left", lambda now: len(now.pods()) == 10 and not any(map(now.gates, now.pods())))
    story.recording.quiet()
    assert story.running() == 0
    add_rack(story, "zone-1", "rack-2", 2)
    story.wait("ten pods run", lambda now: now.running() == 10)
    assert set().union(*places(story, ZONE).values()) == {"zone-1"}


def test_a_replica_whose_leader_has_ended_still_gets_replacements(story: RealStory) -> None:
    """Its minGroupCount falls to one, the other replica's stays; the replacement joins its replica's rack."""
    add_rack(story, "zone-0", "rack-0", 2)
    add_rack(story, "zone-0", "rack-1", 2)
    story.create(replicas())
    story.wait("ten pods run", lambda now: now.running() == 10)
    before = places(story, HOST)
    index = "jobset.sigs.k8s.io/job-index"
    story.finish_pods([pod for pod in story.running_of("leader") if pod["metadata"]["labels"][index] == "0"])
    story.wait(
        "the first replica needs its workers only",
        lambda now: min_group_counts(now) == {"serve": 2, "replica-0": 1, "replica-1": 2},
    )
    worker = next(pod for pod in story.running_of("workers") if pod["metadata"]["labels"][index] == "0")
    story.finish_pods([worker], "Failed")
    story.wait("the failed worker is replaced", lambda now: len(now.pods()) == 11)
    story.wait("nine pods run", lambda now: now.running() == 9)
    assert places(story, HOST)["workers-0"] == before["workers-0"]


def test_blocks_of_blocks_are_in_racks_and_on_hosts(story: RealStory) -> None:
    """Eight pods of one Job: a host for each two, a rack for each four."""
    for rack in range(3):
        add_rack(story, f"zone-{rack % 2}", f"rack-{rack}", 2, cpu=2)
    labels = {"muster.dev/group": "host", "muster.dev/group-size": "2"}
    story.create(with_policy(a_job("mesh", pods=8, labels=labels), BLOCKS))
    story.wait("eight pods run", lambda now: now.running() == 8)
    assert set().union(*places(story, ZONE).values()) == {"zone-0"}
    racks, hosts = places(story, RACK), places(story, HOST)
    assert all(len(found) == 1 for found in hosts.values())
    blocks = [racks[f"host-{2 * rack}"] | racks[f"host-{2 * rack + 1}"] for rack in range(2)]
    assert sorted(blocks, key=sorted) == [{"rack-0"}, {"rack-2"}]
    assert parents(story)["host-3"] == "rack-1"


def test_a_job_in_blocks_grows_into_another_rack(story: RealStory, muster_on_it: Muster) -> None:
    """The next sweep makes the groups of the new blocks, which are placed beside those that run."""
    for rack in range(3):
        add_rack(story, "zone-0", f"rack-{rack}", 2, cpu=2)
    made = story.create(
        with_policy(
            a_job("mesh", pods=8, labels={"muster.dev/group": "host", "muster.dev/group-size": "2"}), BLOCKS
        )
    )
    story.wait("eight pods run", lambda now: now.running() == 8)
    before = places(story, HOST)
    story.patch(made, {"spec": {"parallelism": 11, "completions": 11}})
    story.wait("eleven pods exist", lambda now: len(now.pods()) == 11)
    muster_on_it.sweep()
    story.wait("eleven pods run", lambda now: now.running() == 11)
    after, racks = places(story, HOST), places(story, RACK)
    assert {name: after[name] for name in before} == before
    assert racks["host-4"] == racks["host-5"]
    assert racks["host-4"] not in [racks["host-0"], racks["host-2"]]
    assert {name: parents(story)[name] for name in ("host-4", "host-5", "rack-2")} == {
        "host-4": "rack-2",
        "host-5": "rack-2",
        "rack-2": "zone",
    }
