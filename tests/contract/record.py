"""Records the answers of the real servers to the contract cases: ``python -m tests.contract.record``.

With names of modules of `cases` as arguments, only their cases are recorded.
"""

from __future__ import annotations

import sys
from collections import defaultdict

from tests.cluster import cluster
from tests.cluster.control_plane import Release
from tests.contract import answers
from tests.contract.case import ContractCase
from tests.contract.real import converse


def main(subjects: list[str]) -> int:
    """Record every case of every release, and print changed answers.

    Cases that fail are reported; their old answers are kept.
    """
    broken = 0
    for release in answers.RELEASES:
        recorded: dict[str, dict[str, answers.Entries]] = defaultdict(dict)
        bare = cluster.ClusterOptions(Release(release), controllers=())
        managed = cluster.ClusterOptions(Release(release), controllers=("collectors",))
        with cluster.running(bare) as alone, cluster.running(managed) as with_collectors:
            for case in answers.all_cases(release):
                if subjects and case.subject not in subjects:
                    recorded[case.subject][case.key] = answers.read(release, case) or []
                    continue
                try:
                    entries = converse(with_collectors if case.controllers else alone, case)
                except Exception as error:  # noqa: BLE001 - one broken case must not hide the others
                    broken += 1
                    sys.stderr.write(f"{release} {case.subject}.{case.key}: {error}\n")
                    entries = answers.read(release, case) or []
                else:
                    _show(release, case, entries)
                recorded[case.subject][case.key] = entries
        answers.write(release, recorded)
        sys.stderr.write(f"{release}: {sum(len(one) for one in recorded.values())} cases recorded\n")
    return 1 if broken else 0


def _show(release: str, case: ContractCase, entries: answers.Entries) -> None:
    before = answers.read(release, case)
    changed = "is new" if before is None else answers.difference_in_words(before, entries)
    if changed:
        sys.stdout.write(f"{release} {case.subject}.{case.key}: {changed}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
