"""`muster run` on a terminal of 80 columns: what a person sees, and that Ctrl-C leaves no traces."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.processes import MUSTER, PATIENCE

COLUMNS, LINES = 80, 24
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A process on a pseudo terminal, and what it printed.

    Attributes:
        text: everything, with control sequences.
    """

    def __init__(self, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        environment = {**os.environ, "TERM": "xterm"}
        environment.pop("COLUMNS", None)
        self.process = subprocess.Popen(
            [*MUSTER, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one call, for ^C
        )
        os.close(slave)
        self.text = ""

    def until(self, words: str) -> None:
        """Read until these words were printed."""
        end = time.monotonic() + PATIENCE
        while words not in _CONTROL.sub("", self.text):
            assert time.monotonic() < end, self.text
            assert self._read(0.2), self.text

    def interrupt(self) -> None:
        """Type Ctrl-C."""
        os.write(self._master, b"\x03")

    def wait(self) -> int:
        """Read until it ended; its exit status."""
        while self._read(PATIENCE):
            pass
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        """Kill it if it runs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self._master)

    @property
    def lines(self) -> list[str]:
        """The printed lines, also those that were printed over, without control sequences."""
        return [line for line in re.split(r"[\r\n]+", _CONTROL.sub("", self.text)) if line]

    def _read(self, seconds: float) -> bool:
        """Read what is there; whether the process may print more."""
        ready, _, _ = select.select([self._master], [], [], seconds)
        if not ready:
            return self.process.poll() is None
        try:
            self.text += os.read(self._master, 65536).decode(errors="replace")
        except OSError:  # Linux answers so when the other side is closed
            return False
        return True


@contextmanager
def terminal(*arguments: str) -> Iterator[Terminal]:
    """Run `muster` on a terminal for the length of a block."""
    opened = Terminal(*arguments)
    try:
        yield opened
    finally:
        opened.close()


def test_nothing_is_wider_than_the_terminal() -> None:
    """Live view and report: 80 columns are enough, and no word is cut to pieces."""
    with terminal("run", "--story", "does-not-fit") as screen:
        assert screen.wait() == 0
    assert max(map(len, screen.lines)) <= COLUMNS
    assert "✔ does-not-fit: a gang that does not fit, until it does" in screen.text
    assert re.search(r"gang main 4/4 on node-1, node-2, node-3, node-4", screen.text)
    assert screen.lines[-1] == "1 of 1 stories passed"


def test_at_a_slow_pace_every_step_can_be_seen() -> None:
    """A second before each event: the group is seen gated, then placed, and the refusal of before is gone."""
    with terminal("run", "--slow", "--story", "indexed-job") as screen:
        screen.until("create_workload ")
        began = time.monotonic()
        screen.until("create_pod_groups ")
        screen.until("patch_pods ")
        assert time.monotonic() - began > 1.5
        assert screen.wait() == 0
    assert "gang main 4/4 on node-1" in screen.text


def test_ctrl_c_leaves_no_trace() -> None:
    """Exit status 130, no traceback, and the cursor is visible again."""
    with terminal("run", "--slow") as screen:
        screen.until("torch")
        screen.interrupt()
        assert screen.wait() == 130
    assert "Traceback" not in screen.text
    assert "Exception" not in screen.text
    assert screen.text.rfind("\x1b[?25h") > screen.text.rfind("\x1b[?25l")


def test_kept_up_it_shows_that_there_are_no_jobs_yet_and_ends_at_ctrl_c() -> None:
    """With what to type next."""
    with terminal("run", "--keep", "--story", "torch") as screen:
        screen.until("no jobs of yours yet")
        screen.interrupt()
        assert screen.wait() == 0
    for words in ("export KUBECONFIG=", "muster.dev/gang-jobs=enabled", "indexed-job.yaml"):
        assert words in "".join(screen.lines)
