"""The stack on which events are replayed."""

from __future__ import annotations

from muster.replay.replay import ReplayStack, _known_objects
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
