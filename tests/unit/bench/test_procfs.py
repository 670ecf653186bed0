"""CPU time and memory are read from the texts of /proc."""

from __future__ import annotations

import os

import pytest

from bench import procfs
from bench.procfs import Machine

STATUS = "Name:\tpython\nVmHWM:\t  61440 kB\nVmRSS:\t  51200 kB\nThreads:\t3\n"
STAT = "cpu  300 100 80 1000 200 5 10 5 50 0\ncpu0 150 50 40 500 100 2 5 3 25 0\nintr 1 2 3\n"


def test_memory_is_the_most_so_far() -> None:
    """A function may have freed it since."""
    assert procfs.memory_mib(STATUS) == 60
    with pytest.raises(ValueError, match="no VmHWM"):
        procfs.memory_mib("Name:\tkthreadd\n")


def test_the_machine_is_idle_while_it_waits_for_a_disk() -> None:
    """And time of guests does not count twice."""
    assert Machine.of(STAT, ticks=100) == Machine(busy=5.0, total=17.0)


def test_the_share_of_other_programs() -> None:
    """What is neither idle nor our own; clocks of processes and machine may differ by a tick."""
    before, after = Machine(5.0, 17.0), Machine(8.0, 27.0)
    assert after.others(before, own=1.0) == pytest.approx(0.2)
    assert after.others(before, own=3.01) == 0


def test_this_process_has_used_cpu_time_and_memory() -> None:
    """As the kernel says."""
    this = {"pytest": os.getpid()}
    assert procfs.cpu_of(this)["pytest"] > 0
    assert procfs.memory_of(this)["pytest"] > 1


def test_differences_are_by_name() -> None:
    """A process that started in between counts from 0."""
    assert procfs.since({"etcd": 1.0}, {"etcd": 1.5, "kwok": 0.25}) == {"etcd": 0.5, "kwok": 0.25}
