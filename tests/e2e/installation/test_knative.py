"""Stories that run once more with Knative's own broker, triggers, channel, webhooks and PingSource.

They are the functions of other modules; `OPTIONS` of this module gives them a stage with Knative. The choice:
a few stories of each way in which events matter, in about five minutes. Those of `support/knative_outages.py`
run here only.
"""

from __future__ import annotations

import pytest

from tests.cluster.cluster import ClusterOptions
from tests.e2e.groups.test_sizes import (
    test_a_job_is_scaled_to_zero_to_one_and_up_again,
)
from tests.e2e.installation.test_dead_letters import (
    _letters,
    test_an_event_that_no_function_took_is_kept_and_does_its_work_when_sent_again,
    test_the_oldest_dead_letters_make_room,
)
from tests.e2e.installation.test_outages import (
    test_a_sweep_repairs_changes_made_while_the_adapters_were_down,
    without_adapters,
)
from tests.e2e.installation.test_readiness import test_every_function_has_all_its_permissions
from tests.e2e.installation.test_uninstalling import test_jobs_outlive_muster
from tests.e2e.owners.test_jobs import (
    test_a_job_scaled_up_grows_its_gang,
    test_an_indexed_job_runs_as_one_gang,
)
from tests.e2e.owners.test_jobsets import (
    test_a_restarted_jobset_runs_again_in_its_old_group,
    test_replicas_of_a_replicated_job_are_one_gang,
)
from tests.e2e.owners.test_restarts import test_a_member_that_had_succeeded_counts_again_after_a_restart
from tests.e2e.owners.test_suspension import test_a_suspended_owner_keeps_its_group_over_resume_and_suspend
from tests.e2e.owners.test_trainjobs import (
    test_a_torch_trainjob_runs_as_one_gang,
)
from tests.e2e.policies.test_policies import test_stages_under_a_basic_root_run_one_after_the_other
from tests.e2e.support.knative_outages import (
    authenticated,
    knative,
    labelled,
    test_a_new_namespace_replaces_every_adapter,
    test_a_sweep_repairs_events_that_died_in_a_retrying_dispatcher,
    test_an_event_policy_is_refused_without_authentication,
    test_an_example_step_is_accepted,
    test_every_object_of_an_overlay_is_accepted,
    test_the_next_ping_repairs_changes_that_no_adapter_saw,
    test_with_authentication_only_musters_own_events_are_accepted,
    test_with_labelled_namespaces_others_come_and_go_unnoticed,
)

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OPTIONS = ClusterOptions(knative=True)

__all__ = [
    "_letters",
    "authenticated",
    "knative",
    "labelled",
    "test_a_job_is_scaled_to_zero_to_one_and_up_again",
    "test_a_job_scaled_up_grows_its_gang",
    "test_a_member_that_had_succeeded_counts_again_after_a_restart",
    "test_a_new_namespace_replaces_every_adapter",
    "test_a_restarted_jobset_runs_again_in_its_old_group",
    "test_a_suspended_owner_keeps_its_group_over_resume_and_suspend",
    "test_a_sweep_repairs_changes_made_while_the_adapters_were_down",
    "test_a_sweep_repairs_events_that_died_in_a_retrying_dispatcher",
    "test_a_torch_trainjob_runs_as_one_gang",
    "test_an_event_policy_is_refused_without_authentication",
    "test_an_event_that_no_function_took_is_kept_and_does_its_work_when_sent_again",
    "test_an_example_step_is_accepted",
    "test_an_indexed_job_runs_as_one_gang",
    "test_every_function_has_all_its_permissions",
    "test_every_object_of_an_overlay_is_accepted",
    "test_jobs_outlive_muster",
    "test_replicas_of_a_replicated_job_are_one_gang",
    "test_stages_under_a_basic_root_run_one_after_the_other",
    "test_the_next_ping_repairs_changes_that_no_adapter_saw",
    "test_the_oldest_dead_letters_make_room",
    "test_with_authentication_only_musters_own_events_are_accepted",
    "test_with_labelled_namespaces_others_come_and_go_unnoticed",
    "without_adapters",
]
