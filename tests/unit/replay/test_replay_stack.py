"""The stack on which events are replayed."""

from __future__ import annotations

from muster.replay.recorded_requests import RecordedRequest
from muster.replay.replay import SWEEP, ReplayStack, _known_objects, event_of
from tests.support import builders as b


def test_objects_that_did_not_change_are_kept_once() -> None:
    """They may take 256 MiB, and are listed after each event."""
    with ReplayStack([b.a_job(), b.a_pod()], b.NOW) as stack:
        kept, listed = stack._watched, stack._list_watched()
        assert len(kept) == 2
        assert all(listed[uid] is kept[uid] for uid in kept)


def test_admission_policies_of_objects_are_left_out() -> None:
    """An expression of a stranger's may take minutes for each write of a function."""
    group, spec = "admissionregistration.k8s.io/v1", {"validations": [{"expression": "false"}]}
    policy = {
        "apiVersion": group,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": spec,
    }
    assert _known_objects([policy, b.a_job()]) == [b.a_job()]


def test_an_event_whose_ttl_is_used_up_is_replayed() -> None:
    """It was captured as the reply of many others, and is the first one now."""
    headers = SWEEP.with_attributes(knativebrokerttl="0").headers()
    event = event_of(RecordedRequest(headers, b"", "events.jsonl:1"))
    with ReplayStack([], b.NOW) as stack:
        assert not stack.deliver(event)


def test_of_a_dead_letter_its_names_are_kept() -> None:
    """Each of six functions refuses an event of too many attributes, which took 1.2 MB of the letters."""
    event = SWEEP.with_attributes(**{f"a{number}": "1" for number in range(2_000)})
    with ReplayStack([], b.NOW) as stack:
        stack.deliver(event)
        letters = stack.dead_letters
    assert {letter["knativeerrorcode"] for letter in letters} == {"400"}
    assert {letter["id"] for letter in letters} == {"sweep"}
    assert max(len(letter.attributes) for letter in letters) == 4
