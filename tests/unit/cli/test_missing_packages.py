"""Where an installation lacks packages, `muster` says which command installs them."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT = """
import sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None  # as if it were not installed
from muster.__main__ import main
sys.argv = ["muster", *sys.argv[2:]]
main()
"""


@pytest.mark.parametrize(
    ("package", "arguments"),
    [("click", ["--help"]), ("cel_expr_python", ["explain", "eventing/examples/racks.yaml"])],
)
def test_the_pip_command_is_printed(package: str, arguments: list[str]) -> None:
    """One line with the extra to install, and exit status 1."""
    command = [sys.executable, "-c", WITHOUT, package, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert (ran.returncode, ran.stdout) == (1, "")
    (line,) = ran.stderr.splitlines()
    assert package in line
    assert "pip install 'muster-gangs[local]'" in line
