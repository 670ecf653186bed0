"""The picture of the dashboard in docs/pictures: a local stack, scraped by a real Prometheus for minutes.

PYTHONPATH=shared .venv-bench/bin/python -m tests.docs.dashboard     makes it anew (needs Go 1.26)

Every panel of eventing/observability/dashboard.json is drawn from what Prometheus answers to its expressions.
Grafana is not needed; the panels have its layout, and not its look.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import matplotlib as mpl
import urllib3
import yaml
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from muster.cli.output import echo
from muster.files import EVENTING
from muster.local.stack import Stack, StackOptions
from muster.objects.resources import JOBS, NAMESPACES, Resource
from tests.cluster import processes
from tests.cluster.modules import PROMETHEUS, build

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "dashboard.svg"
DASHBOARD: dict[str, Any] = json.loads((EVENTING / "observability" / "dashboard.json").read_text())

MINUTES = 5
SCRAPE_SECONDS = 5
SWEEP_SECONDS = 20
NAMESPACE = "team-a"
SWEEP = {
    "ce-specversion": "1.0",
    "ce-source": "/dashboard",
    "ce-type": "dev.muster.sweep",
}
_VARIABLES = {"$function": ".*", "$__rate_interval": "1m", "[5m]": "[1m]"}
"""What stands in expressions for the choices in Grafana, and a window that fits into the minutes above."""

_UNITS = {"s": ("s", 1), "bytes": ("MiB", 2**20), "reqps": ("per second", 1), "short": ("", 1)}
"""What is written for a unit of Grafana, and by what its values are divided."""

_GREEN = "#1a7f37"
_MOST_LINES = 12
"""The lines of a panel that are drawn; more would hide one another."""

_COLUMN, _ROW = 0.55, 0.28
"""Inches of a unit of the dashboard's grid, which has 24 columns."""


@dataclass
class Series:
    """The samples of one line of a panel."""

    legend: str
    times: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


class Prometheus:
    """A Prometheus server on loopback, which scrapes functions.

    Args:
        folder: of its configuration, data and log.
        functions: the URL of each function by its name.
    """

    def __init__(self, folder: Path, functions: dict[str, str]) -> None:
        (port,) = processes.free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        config = folder / "prometheus.yaml"
        targets = [_target(name, url) for name, url in sorted(functions.items())]
        scrape = {"job_name": "muster-system/muster", "static_configs": targets}
        interval = {"scrape_interval": f"{SCRAPE_SECONDS}s"}
        config.write_text(yaml.safe_dump({"global": interval, "scrape_configs": [scrape]}))
        command = [
            str(build(PROMETHEUS)),
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        self._process = processes.start("prometheus", command, folder)
        processes.wait_ready(self._process, self._ready)

    def stop(self) -> None:
        """Stop the server."""
        self._process.stop(grace=5)

    def query(self, expression: str, legend: str, start: float, end: float) -> list[Series]:
        """Return what an expression evaluates to, every SCRAPE_SECONDS between two times.

        Raises:
            ValueError: Prometheus refused the expression.
        """
        query = {"query": expression, "start": str(start), "end": str(end), "step": str(SCRAPE_SECONDS)}
        answer = urllib3.request("GET", f"{self.url}/api/v1/query_range", fields=query).json()
        if answer["status"] != "success":
            raise ValueError(f"{expression}: {answer}")
        return [_series(entry, legend) for entry in answer["data"]["result"]]

    def _ready(self) -> bool:
        try:
            return urllib3.request("GET", f"{self.url}/-/ready", retries=False).status == 200
        except urllib3.exceptions.HTTPError:
            return False


def panels(prometheus: Prometheus, start: float, end: float) -> Iterator[tuple[dict[str, Any], list[Series]]]:
    """Yield each panel of the dashboard with the series of its expressions."""
    for panel in DASHBOARD["panels"]:
        series: list[Series] = []
        for target in panel["targets"]:
            expression = target["expr"]
            for variable, value in _VARIABLES.items():
                expression = expression.replace(variable, value)
            series += prometheus.query(expression, target.get("legendFormat", ""), start, end)
        yield panel, series


@contextmanager
def a_busy_cluster() -> Iterator[Stack]:
    """Yield a local stack, each Service in a process of its own; its three nodes have 8 CPUs each."""
    with Stack(StackOptions(processes=True)) as stack:
        labels = {"muster.dev/gang-jobs": "enabled"}
        _create(stack, NAMESPACES, {"metadata": {"name": NAMESPACE, "labels": labels}})
        yield stack


def run_jobs(stack: Stack, seconds: float) -> None:
    """Create a gang every few seconds and delete the oldest: some are placed, some wait, some are refused."""
    chance = random.Random(1)  # noqa: S311 - no secret
    names: list[str] = []
    end, swept = time.monotonic() + seconds, 0.0
    while time.monotonic() < end:
        name = f"train-{len(names)}"
        names.append(name)
        pods = chance.choice((2, 4, 6, 8))
        refused = chance.random() < 0.1
        _create(stack, JOBS, _job(name, pods, policy="workload: {groups: 3}" if refused else ""))
        if len(names) > 7:
            stack.client.delete(JOBS, names[len(names) - 8], NAMESPACE)
        time.sleep(chance.uniform(2, 6))
        if time.monotonic() - swept > SWEEP_SECONDS:
            swept = time.monotonic()
            urllib3.request("POST", stack.broker_url, headers=SWEEP | {"ce-id": f"sweep-{len(names)}"})


def draw(drawn: list[tuple[dict[str, Any], list[Series]]], path: Path) -> None:
    """Draw panels at their places in the dashboard's grid."""
    mpl.rcParams.update({"svg.hashsalt": "dashboard", "svg.fonttype": "none", "font.size": 8})
    height = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel, _ in drawn)
    canvas = Figure(figsize=(24 * _COLUMN, height * _ROW), facecolor="#f4f5f5")
    for panel, series in drawn:
        place = panel["gridPos"]
        left, bottom = place["x"] / 24, 1 - (place["y"] + place["h"]) / height
        width, tall = place["w"] / 24, place["h"] / height
        card = canvas.add_axes((left + 0.004, bottom + 0.002, width - 0.008, tall - 0.004))
        card.set(facecolor="white", xticks=[], yticks=[])
        card.text(0.01, 1 - 0.28 / place["h"], panel["title"], fontweight="bold", va="top")
        if panel["type"] == "stat":
            card.text(0.5, 0.35, _number(panel, series), ha="center", va="center", fontsize=20, color=_GREEN)
        else:
            plot = (left + 0.042, bottom + tall * 0.18, width * 0.62, tall * 0.62)
            _draw_lines(canvas.add_axes(plot), panel, series)
    canvas.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def main() -> None:
    """Run, scrape, ask for every panel, and draw."""
    with tempfile.TemporaryDirectory(prefix="muster-") as folder, a_busy_cluster() as stack:
        functions = {name.replace("/", "-"): url for name, url in stack.function_urls.items()}
        prometheus = Prometheus(Path(folder), functions)
        try:
            start = time.time()
            run_jobs(stack, MINUTES * 60)
            time.sleep(2 * SCRAPE_SECONDS)
            drawn = list(panels(prometheus, start, time.time()))
        finally:
            prometheus.stop()
    for panel, series in drawn:
        echo(f"{panel['title']}: {len(series)} series")
    draw(drawn, PICTURE)


def _draw_lines(axes: Axes, panel: dict[str, Any], series: list[Series]) -> None:
    begin = min((entry.times[0] for entry in series), default=0.0)
    unit, divisor = _UNITS[panel["fieldConfig"]["defaults"]["unit"]]
    for entry in series[:_MOST_LINES]:
        minutes = [(at - begin) / 60 for at in entry.times]
        axes.plot(minutes, [value / divisor for value in entry.values], linewidth=1.1, label=entry.legend)
    axes.grid(alpha=0.3)
    axes.tick_params(length=0)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("minutes")
    axes.set_ylabel(unit)
    if series:
        axes.legend(fontsize=6.5, loc="upper left", bbox_to_anchor=(1.01, 1.06), frameon=False)


def _number(panel: dict[str, Any], series: list[Series]) -> str:
    defaults = panel["fieldConfig"]["defaults"]
    if not series:
        return str(defaults.get("noValue", "no data"))
    unit, divisor = _UNITS[defaults["unit"]]
    return f"{series[0].values[-1] / divisor:.0f} {unit}"


def _series(entry: dict[str, Any], legend: str) -> Series:
    """The samples of an answer; a gap is a sample that is not a number, so that no line is drawn over it."""
    for name, value in entry["metric"].items():
        legend = legend.replace("{{" + name + "}}", value)
    series = Series(legend)
    for at, value in entry["values"]:
        if series.times and at - series.times[-1] > SCRAPE_SECONDS:
            series.times.append(at - SCRAPE_SECONDS)
            series.values.append(nan)
        series.times.append(at)
        series.values.append(float(value))
    return series


def _target(name: str, url: str) -> dict[str, Any]:
    labels = {"namespace": "muster-system", "pod": name}
    return {"targets": [urlsplit(url).netloc], "labels": labels}


def _create(stack: Stack, resource: Resource, body: dict[str, Any]) -> None:
    named = {"apiVersion": resource.api_version, "kind": resource.kind}
    stack.client.create(resource, named | body, manager="kubectl")


def _job(name: str, pods: int, policy: str) -> dict[str, Any]:
    annotations = {"muster.dev/pod-group-policy": policy} if policy else {}
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {
        "completionMode": "Indexed",
        "completions": pods,
        "parallelism": pods,
        "template": template,
    }
    return {"metadata": {"name": name, "namespace": NAMESPACE, "annotations": annotations}, "spec": spec}


if __name__ == "__main__":
    main()
