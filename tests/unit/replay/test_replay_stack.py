"""The stack on which events are replayed."""

from __future__ import annotations

from muster.replay.replay import ReplayStack
from tests.support import builders as b


def test_objects_that_did_not_change_are_kept_once() -> None:
    """They may take 256 MiB, and are listed after each event."""
    with ReplayStack([b.a_job(), b.a_pod()], b.NOW) as stack:
        kept, listed = stack._watched, stack._list_watched()
        assert len(kept) == 2
        assert all(listed[uid] is kept[uid] for uid in kept)
