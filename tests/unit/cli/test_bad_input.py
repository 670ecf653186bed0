"""What a person typed wrong is one line on standard error and exit status 2."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.unit.cli.conftest import Filed, Muster, assert_names
from tests.unit.cli.sample import a_job, an_event

EVENT = ("plan", "create_workload", "--event")


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        pytest.param(["lnit"], ["lnit", "see muster --help"], id="no such command"),
        pytest.param(["status", "-x"], ["-x", "see muster status --help"], id="no such option"),
        pytest.param(["status", "-A", "-n", "a"], ["-A"], id="options that exclude each other"),
        pytest.param(["status", "--kubeconfig", "none"], ["none"], id="no such kubeconfig"),
        pytest.param(["plan", "create_wokload"], ["--event"], id="a missing option"),
        pytest.param(
            ["plan", "wokload", "--event", "{event}", "--objects", "{objects}"], ["wokload"], id="no function"
        ),
        pytest.param([*EVENT, "none.json", "--objects", "{objects}"], ["none.json"], id="no such file"),
        pytest.param(
            [*EVENT, "{broken}", "--objects", "{objects}"], ["broken.json"], id="an event that is cut"
        ),
        pytest.param(
            [*EVENT, "{event}", "--objects", "{broken}"], ["broken.json:2:1"], id="objects that are cut"
        ),
        pytest.param([*EVENT, "{event}", "--objects", "{list}"], ["list.yaml"], id="no Kubernetes object"),
        pytest.param(
            [*EVENT, "{event}", "--objects", "{wrong}"], ["parallelism"], id="a field of a wrong type"
        ),
        pytest.param([*EVENT, "{event}", "--objects", "{objects}", "--moment", "x"], ["'x'"], id="no moment"),
        pytest.param(["replay", "{event}", "--to", "127.0.0.1:1"], ["--to", "127.0.0.1:1"], id="no URL"),
        pytest.param(["record", "e.jsonl", "--for", "soon"], ["--for", "soon"], id="no duration"),
        pytest.param(["record", "e.json"], ["e.json", ".jsonl.gz"], id="a recording of another kind"),
        pytest.param(["record", "{recorded}"], ["e.jsonl", "already exists"], id="a recording that is there"),
        pytest.param(["run", "--story", "fairy"], ["fairy"], id="no such story"),
        pytest.param(
            ["new-step", "Up!", "--on", "Job"], ["see muster new-step --help"], id="no such event kind"
        ),
        pytest.param(["explain", "node/a"], ["node/a"], id="a kind that cannot be explained"),
        pytest.param(["lint", "nowhere"], ["nowhere"], id="no such folder"),
    ],
)
def test_bad_input_is_one_line(muster: Muster, filed: Filed, arguments: list[str], names: list[str]) -> None:
    """It names what is wrong, and nothing is printed on standard output."""
    files = {
        "event": filed("event.json", an_event()),
        "objects": filed("objects.yaml", a_job()),
        "broken": filed("broken.json", '{"a": '),
        "list": filed("list.yaml", "- 7\n"),
        "recorded": filed("e.jsonl", ""),
        "wrong": filed("wrong.yaml", yaml.safe_dump(a_job(parallelism="many"))),
    }
    result = muster(*(argument.format(**files) for argument in arguments))
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("muster: ")
    assert_names(line, *names)


def test_a_file_that_may_not_be_opened_is_bad_input(muster: Muster, tmp_path: Path) -> None:
    """In the words of the system."""
    result = muster("lint", str(tmp_path / ("a" * 300)))
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
