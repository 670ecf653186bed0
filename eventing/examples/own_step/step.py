"""Tells a chat channel of every gang that has waited for five minutes. Copy the folder and change it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from http import HTTPStatus

import urllib3
from flask import Flask, request

from muster.cluster.interface import Cluster
from muster.cluster.read import list_if_served
from muster.objects.resources import JOBS, JOBSETS, TRAINJOBS
from muster.runtime.config import connect, from_environment

PATIENCE, TICK = timedelta(minutes=5), timedelta(minutes=1)
CONDITIONS = {"PodGroupsScheduled", "muster.dev/PodGroupsScheduled"}


def waiting(cluster: Cluster, now: datetime) -> Iterator[str]:
    """A line for each gang whose five minutes were over within the last minute, so that each is told once."""
    for owner in (
        one for resource in (TRAINJOBS, JOBSETS, JOBS) for one in list_if_served(cluster, resource)
    ):
        for said in owner.get("status", {}).get("conditions", []):
            if said["type"] in CONDITIONS and said["status"] == "False":
                since = datetime.fromisoformat(said["lastTransitionTime"])
                if PATIENCE <= now - since < PATIENCE + TICK:
                    name = f"{owner['kind']} {owner['metadata']['namespace']}/{owner['metadata']['name']}"
                    yield f"{name} waits since {since:%H:%M:%S}: {said['reason']}: {said['message']}"


def create_app(cluster: Cluster, webhook: str) -> Flask:
    """Takes the events of a PingSource; the time is the event's, so that a retry tells the same."""
    app = Flask(__name__)

    @app.post("/")
    def tick() -> tuple[str, int]:
        lines = waiting(cluster, datetime.fromisoformat(request.headers["Ce-Time"]))
        told = [urllib3.request("POST", webhook, json={"text": line}, timeout=5.0) for line in lines]
        # 503 makes the broker bring the event again; 202 without a body says that it is done.
        return "", 202 if all(answer.status < HTTPStatus.BAD_REQUEST for answer in told) else 503

    return app


def main() -> Flask:
    """For a WSGI server: `waitress-serve --call step:main`."""
    return create_app(connect(from_environment()), os.environ["WEBHOOK_URL"])
