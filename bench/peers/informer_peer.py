"""create_workload as a controller with informers in one process: `python informer_peer.py NAMESPACE`.

The design of client-go's controllers with the parts that the `kubernetes` package has for it: a shared
informer for Jobs and one for Workloads, a queue of keys, and workers that read the caches and write by the
package's API classes. It knows neither policies nor TrainJobs.
"""

from __future__ import annotations

import sys
import threading
from queue import Queue
from typing import Any

from kubernetes import client, config
from kubernetes.informer import ADDED, MODIFIED, SharedInformer

from bench.peers.manifest import GROUP, workload

WORKERS = 4


def main(namespace: str) -> None:
    """Run until the process is stopped."""
    config.load_kube_config()
    scheduling = client.SchedulingV1beta1Api()
    jobs = SharedInformer(client.BatchV1Api().list_namespaced_job, namespace=namespace)
    workloads = SharedInformer(scheduling.list_namespaced_workload, namespace=namespace)
    queue: Queue[str] = Queue()
    for change in (ADDED, MODIFIED):
        jobs.add_event_handler(change, lambda job: queue.put(f"{namespace}/{job.metadata.name}"))
    workloads.start()
    jobs.start()
    for _ in range(WORKERS):
        threading.Thread(target=_work, args=(queue, jobs, workloads, scheduling), daemon=True).start()
    threading.Event().wait()


def _work(queue: Queue[str], jobs: SharedInformer, workloads: SharedInformer, scheduling: Any) -> None:
    while True:
        key = queue.get()
        job = jobs.cache.get_by_key(key)
        if job is not None and workloads.cache.get_by_key(key) is None:
            _create(job, scheduling)


def _create(job: Any, scheduling: Any) -> None:
    group = (job.spec.template.metadata.labels or {}).get(GROUP)
    if group is None:
        return
    metadata = job.metadata
    body = workload(metadata.name, metadata.namespace, metadata.uid, group, job.spec.parallelism)
    try:
        scheduling.create_namespaced_workload(metadata.namespace, body)
    except client.ApiException as error:
        if error.status != 409:
            raise


if __name__ == "__main__":
    main(sys.argv[1])
