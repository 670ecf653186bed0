"""Stories that run once more, with Knative's own broker, triggers, channel, webhooks and PingSource.

They are the same functions as in the other modules; `OPTIONS` of this module gives them another stage.
"""

from __future__ import annotations

import pytest

from tests.cluster.cluster import ClusterOptions
from tests.e2e.test_jobs import test_an_indexed_job_runs_as_one_gang

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OPTIONS = ClusterOptions(knative=True)

__all__ = ["test_an_indexed_job_runs_as_one_gang"]
