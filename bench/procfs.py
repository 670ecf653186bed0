"""CPU time and memory of processes and of the machine, on Linux."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Machine:
    """CPU time of all processors since the machine was started, in seconds.

    Attributes:
        busy: spent by programs and the kernel.
        total: busy and idle.
    """

    busy: float
    total: float

    @classmethod
    def of(cls, stat: str, ticks: int = TICKS) -> Machine:
        """Return what the text of /proc/stat says."""
        # user, nice, system, idle, iowait, irq, softirq, steal; guest time is in user and nice as well.
        times = [int(field) for field in stat.splitlines()[0].split()[1:9]]
        idle = times[3] + times[4]
        return cls((sum(times) - idle) / ticks, sum(times) / ticks)

    @classmethod
    def now(cls) -> Machine:
        """Return that of this machine."""
        return cls.of(Path("/proc/stat").read_text())

    def others(self, before: Machine, own: float) -> float:
        """Return the share of the time since then that was spent, but not in the given CPU seconds."""
        return max(0.0, self.busy - before.busy - own) / (self.total - before.total)


def memory_mib(status: str) -> float:
    """Return the most resident memory of a process so far in MiB, from the text of /proc/PID/status."""
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name == "VmHWM":
            return int(value.split()[0]) / 1024
    raise ValueError("no VmHWM")


def cpu_of(pids: Mapping[str, int]) -> dict[str, float]:
    """Return the CPU seconds of running processes so far, by name."""
    # The clock of another process (clock_getcpuclockid(3)), in nanoseconds; /proc counts in 10 ms.
    return {name: time.clock_gettime((~pid << 3) | 2) for name, pid in pids.items()}


def memory_of(pids: Mapping[str, int]) -> dict[str, float]:
    """Return the most resident memory of running processes so far in MiB, by name."""
    return {name: memory_mib(Path(f"/proc/{pid}/status").read_text()) for name, pid in pids.items()}


def since(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return the difference by name; what was not there before counts from 0."""
    return {name: value - before.get(name, 0.0) for name, value in after.items()}
