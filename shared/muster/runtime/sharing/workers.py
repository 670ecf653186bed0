"""The workers of one process."""

from __future__ import annotations

from muster.runtime.sharing.computing import EventLoop, FairLock
from muster.runtime.sharing.list_memory import SharedListMemory
from muster.runtime.sharing.parsing_order import SmallestFirst
from muster.runtime.sharing.turns import Turns


class Workers:
    """The workers of one process, which all of its functions share.

    Args:
        workers: the most events of one namespace in work.
        waiting: the most events that wait.
        most_in_work: the most events in work, if those are more than `workers` and one more.

    Attributes:
        turns: the turns of events.
        reading: lets bodies be parsed, which takes up to eight times their memory.
        loop: the event loop of the server, if it has one.
        sweeping: held by the sweep that computes.
        lists: the memory of the lists of events.
    """

    def __init__(
        self,
        workers: int,
        waiting: int,
        most_in_work: int = 0,
    ) -> None:
        self.turns = Turns(workers, waiting, most_in_work)
        self.reading = SmallestFirst()
        self.loop = EventLoop()
        self.sweeping = FairLock()
        self.lists = SharedListMemory()
