"""The comparison of recordings ignores random values and order, and reports every other difference."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from muster.replay.files import read_text
from tests.cluster.sink import ReceivedRequest
from tests.conftest import Wording
from tests.replays.recorded import FOLDER
from tests.replays.recording.adapters import structured
from tests.replays.recording.difference import difference
from tests.replays.recording.masks import Masks
from tests.replays.recording.outline import outline, verb
from tests.replays.recording.scripts import SCRIPTS
from tests.replays.recording.take import Object, Take

STORY = "5-does-not-fit"


@cache
def kept(story: str) -> Take:
    """Return a recording of tests/replays/recordings, for reading only."""
    return Take.read(FOLDER, story)


@pytest.fixture(name="take", scope="module")
def _take() -> Take:
    """One of them."""
    return kept(STORY)


@pytest.mark.parametrize("story", SCRIPTS)
def test_a_recording_is_no_other_than_itself(story: str) -> None:
    """Every script has a recording."""
    take = kept(story)
    assert take.moments
    assert difference(story, take, take) == ""


@pytest.mark.parametrize("story", SCRIPTS)
def test_both_modes_record_the_same_events(story: str) -> None:
    """The stored recordings fulfil what `Play.take` asserts."""
    take = kept(story)
    resource, reference = (
        Counter((event["kind"], event["namespace"], event["name"], verb(event)) for event in events)
        for events in (take.resource, take.reference)
    )
    assert resource == reference


UIDS = r"\b[0-9a-f]{8}(?=-[0-9a-f]{4}-4|\")"
CHANCES: dict[str, tuple[str, str | Callable[[re.Match[str]], str]]] = {
    "UIDs and the names made of them": (UIDS, lambda found: found[0][::-1]),
    "random ends of pods' names": (r"(?<=big-\d-)[a-z0-9]{5}", lambda found: found[0][::-1]),
    "the hash in a Workload's name": (r"(?<=big-)[0-9a-z]{8,10}(?![0-9a-z])", lambda found: found[0][::-1]),
    "times": (r"\d{4}-\d\d-\d\dT\d\d(?=:)", "2031-01-02T11"),
    "versions": (r"(?<=\"resourceVersion\":\")\d+", lambda found: str(int(found[0]) + 5000)),
    "ids of events": (r"(?<=\"id\":\")[0-9a-f]{4}", "beef"),
    "the port of the API server": (r"(?<=https://127.0.0.1:)\d+", "6443"),
    "addresses of pods": (r"10\.0\.0\.(?=\d)", "10.9.9."),
    "which node a pod got": (r"\bnode-[12]\b", lambda found: "node-3" if found[0] == "node-1" else "node-1"),
    "names of volumes": (r"(?<=\"kube-api-access-)[a-z0-9]{5}", lambda found: found[0][::-1]),
}


@pytest.mark.parametrize("chance", CHANCES)
def test_chance_is_no_difference(take: Take, chance: str) -> None:
    """Values that differ in each run are no difference."""
    pattern, instead = CHANCES[chance]
    again = changed_text(take, lambda text: re.sub(pattern, instead, text))
    assert again != take
    assert difference(STORY, take, again) == ""


def test_by_how_many_updates_pods_were_counted_is_no_difference(take: Take) -> None:
    """A status that counts to 4 in one or in two updates is no difference."""
    four = next(
        event
        for event in take.resource
        if event["kind"] == "Job" and event["data"]["status"].get("active") == 4
    )
    two = copy.deepcopy(four)
    two["data"]["status"]["active"] = 2
    again = [copied for event in take.resource for copied in ((two, four) if event == four else (event,))]
    assert difference(STORY, take, Take(again, take.reference, take.moments)) == ""
    never = [two if event == four else event for event in take.resource]
    lines = difference(STORY, take, Take(never, take.reference, take.moments)).splitlines()
    assert "-before create_workload: big counts status.active=4" in lines
    assert "+before create_workload: big counts status.active=2" in lines


def test_which_pod_is_which_is_no_difference(take: Take) -> None:
    """Another order of scheduling among the pods of a Job is no difference."""
    swapped = {"big-0": "big-1", "big-1": "big-0"}
    again = changed_text(take, lambda text: re.sub(r"big-[01]\b", lambda found: swapped[found[0]], text))
    assert again != take
    assert difference(STORY, take, again) == ""


def test_the_order_on_the_way_to_one_moment_is_no_difference(take: Take) -> None:
    """Another order of events between two moments is no difference."""
    again = Take(take.resource[::-1], take.reference[::-1], take.moments)
    assert difference(STORY, take, again) == ""


@pytest.mark.thorough
def test_every_event_counts(take: Take) -> None:
    """A missing event of any kind and verb is reported with its kind and line."""
    last = {(event["kind"], verb(event)): number for number, event in enumerate(take.resource)}
    assert len(last) == 11
    for (kind, _), number in last.items():
        without = Take([*take.resource[:number], *take.resource[number + 1 :]], take.reference, take.moments)
        text = difference(STORY, take, without)
        assert text.startswith(f"--- {STORY}: {kind}, as it was"), number
        assert "\n-" in text, number


def test_owners_that_go_one_by_one_are_no_difference(take: Take) -> None:
    """Whether a PodGroup loses an owner reference before it is deleted is no difference."""
    again = copy.deepcopy(take)
    going = [
        event
        for event in again.resource
        if event["kind"] == "PodGroup" and "deletionTimestamp" in event["data"]["metadata"]
    ]
    for event in going:
        event["data"]["metadata"]["ownerReferences"].pop()
    released = copy.deepcopy(going[0])
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        del released["data"]["metadata"][field]
    again.resource.insert(again.resource.index(going[0]), released)
    assert difference(STORY, take, again) == ""


def test_every_reference_counts(take: Take) -> None:
    """A missing event in mode Reference is reported in its own section."""
    text = difference(STORY, take, Take(take.resource, take.reference[1:], take.moments))
    assert text.splitlines()[0] == f"--- {STORY}: references, as it was"
    assert "-Job big add" in text.splitlines()


def test_every_moment_counts(take: Take) -> None:
    """A missing moment is reported with its objects."""
    text = difference(STORY, take, Take(take.resource, take.reference, take.moments[:-1]))
    assert "-deleted: Namespace team-e" in text


def test_a_changed_value_is_reported_with_its_field(take: Take, wording: Wording) -> None:
    """A changed value in an otherwise equal line is reported."""
    again = copy.deepcopy(take)
    for event in again.resource:
        if event["kind"] == "Workload":
            event["data"]["spec"]["podGroupTemplates"][0]["priority"] = 7
    kind, field = difference(STORY, take, again).splitlines()
    assert kind.startswith(f"{STORY}: Workload")
    assert field.strip().startswith("data.spec.podGroupTemplates[main].priority: ")
    assert re.findall(r"\d+", field) == ["7", "2"]
    wording(kind)
    wording(field)


def test_an_update_is_reported_by_its_new_values(take: Take) -> None:
    """A value is reported only in the update that brought it."""
    again = copy.deepcopy(take)
    for event in again.resource:
        for condition in event["data"].get("status", {}).get("conditions", []):
            if event["kind"] == "PodGroup" and condition["reason"] == "Unschedulable":
                condition["message"] = "no room"
    (lines,) = difference(STORY, take, again).splitlines()[1:]
    path = r"data\.status\.conditions\[PodGroupInitiallyScheduled\]\.message"
    assert re.fullmatch(rf"  {path}: '.+' -> 'no room'", lines)


CREDENTIALS = re.compile(r"managedFields|eyJ[A-Za-z0-9_-]{10}|-----BEGIN|Bearer |kind: Secret")


@pytest.mark.parametrize("story", SCRIPTS)
def test_recordings_contain_no_secrets(story: str) -> None:
    """Recordings contain no tokens, certificates or Secrets, and only addresses of loopback and KWOK."""
    text = "".join(read_text(path) for path in FOLDER.glob(f"{story}.*"))
    assert not CREDENTIALS.search(text)
    addresses = set(re.findall(r"\b\d+\.\d+\.\d+\.\d+\b", text))
    assert {address for address in addresses if not address.startswith("10.0.0.")} == {"127.0.0.1"}


def test_an_outline_has_moment_object_verb_and_changes(take: Take) -> None:
    """A line has the moment, the object, the verb and the changes; its count is beside it."""
    lines = {text: line.count for text, line in outline(take)["PodGroup"].items()}
    name, condition = "big-main-<uid8>", "status.conditions[PodGroupInitiallyScheduled]"
    assert lines == {
        f"before patch_pods: {name} add": 1,
        f"unschedulable: {name} update +status.conditions": 1,
        f"node added, all bound: {name} update {condition}.reason=Scheduled {condition}.status=True": 1,
        f"deleted: {name} update +metadata.deletionGracePeriodSeconds +metadata.deletionTimestamp": 1,
        f"deleted: {name} delete": 1,
    }
    pods = outline(take)["Pod"]
    gate = "-metadata.labels.muster.dev/gated -spec.schedulingGates"
    assert pods[f"unschedulable: big-<index>-<random> update {gate}"].count == 4


def test_only_names_with_chance_in_them_are_masked(take: Take) -> None:
    """Names that users chose are not replaced."""
    masks = Masks(take)
    assert masks.text("Job big waits for node-2") == "Job big waits for node-2"
    assert masks.document({"name": "big", "spec": {"nodeName": "node-2"}, "note": None}) == {
        "name": "big",
        "spec": {"nodeName": "<node>"},
        "note": None,
    }


def test_a_recording_is_read_as_it_was_written(take: Take, tmp_path: Path) -> None:
    """A recording that is written and read again is equal, and so are its bytes."""
    short = Take(take.resource, take.reference, take.moments[:1])
    for folder in ("once", "twice"):
        short.write(tmp_path / folder, STORY)
    assert Take.read(tmp_path / "once", STORY) == short
    once, twice = (
        {path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()}
        for folder in ("once", "twice")
    )
    assert once == twice
    assert all(content[4:8] == bytes(4) for name, content in once.items() if name.endswith(".gz"))


def test_an_event_is_kept_as_it_was_sent() -> None:
    """Headers become attributes, unchanged; managedFields and the source's namespace are left out."""
    data = {"kind": "Job", "metadata": {"name": "big", "managedFields": [{"manager": "kubectl"}]}}
    headers = {
        "Host": "127.0.0.1:8080",
        "Kn-Namespace": "muster-system",
        "Content-Type": "application/json",
        "Ce-Kind": "Job",
        "Ce-Specversion": "1.0",
        "Ce-Aside": "b%20c",
        "Ce-Id": "1",
        "Ce-Source": "https://127.0.0.1:6443",
        "Ce-Type": "dev.knative.apiserver.resource.add",
    }
    event = structured(ReceivedRequest(headers, json.dumps(data).encode()))
    assert list(event.items()) == [
        ("specversion", "1.0"),
        ("id", "1"),
        ("source", "https://127.0.0.1:6443"),
        ("type", "dev.knative.apiserver.resource.add"),
        ("datacontenttype", "application/json"),
        ("kind", "Job"),
        ("aside", "b%20c"),
        ("data", {"kind": "Job", "metadata": {"name": "big"}}),
    ]


def changed_text(take: Take, change: Callable[[str], str]) -> Take:
    """Return a recording in which a text is replaced everywhere."""

    def of(objects: list[Object]) -> list[Object]:
        text = json.dumps(objects, separators=(",", ":"))
        changed: list[Object] = json.loads(change(text))
        return changed

    return Take(of(take.resource), of(take.reference), of(take.moments))
