"""Tells a chat channel of every gang that has waited for five minutes. Copy the folder, and change what you like."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timedelta

import urllib3
from flask import Flask, request

from shared.cluster.port import RawCluster
from shared.objects.resources import JOBS, JOBSETS, TRAINJOBS
from shared.runtime.config import connect, from_environment

PATIENCE, TICK = timedelta(minutes=5), timedelta(minutes=1)
CONDITIONS = {"PodGroupsScheduled", "muster.dev/PodGroupsScheduled"}


def waiting(cluster: RawCluster, now: datetime) -> Iterator[str]:
    """A line for each gang whose five minutes were over within the last minute, so that each is told once."""
    for resource in (TRAINJOBS, JOBSETS, JOBS):
        for owner in cluster.list(resource):
            for said in owner.get("status", {}).get("conditions", []):
                since = now - datetime.fromisoformat(said["lastTransitionTime"])
                if said["type"] in CONDITIONS and said["status"] == "False" and PATIENCE <= since < PATIENCE + TICK:
                    name = f"{resource.kind} {owner['metadata']['namespace']}/{owner['metadata']['name']}"
                    yield f"{name} waits since {said['lastTransitionTime']}: {said['reason']}: {said['message']}"


def create_app(cluster: RawCluster, webhook: str) -> Flask:
    """Takes the events of a PingSource; the time is the event's, so that a retry tells the same."""
    app = Flask(__name__)

    @app.post("/")
    def tick() -> tuple[str, int]:
        for line in waiting(cluster, datetime.fromisoformat(request.headers["Ce-Time"])):
            urllib3.request("POST", webhook, json={"text": line}, timeout=5.0, retries=False)
        return "", 202

    return app


def main() -> Flask:
    """For a WSGI server: `waitress-serve --call step:main`."""
    return create_app(connect(from_environment()), os.environ["WEBHOOK_URL"])
