"""All reasons of Muster in logs, answers, plans, conditions and Events; docs/operations.md explains them."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why something was done or not done."""

    # Done.
    WORKLOAD_CREATED = "WorkloadCreated"
    POD_GROUPS_CREATED = "PodGroupsCreated"
    GATES_LIFTED = "GatesLifted"
    GANG_RESIZED = "GangResized"
    CONDITIONS_UPDATED = "ConditionsUpdated"
    ORPHANS_REMOVED = "OrphansRemoved"  # its owner is gone, rebuilt, suspended or has ended
    FALLBACK_CREATED = "FallbackCreated"  # for stamped pods that Muster does not group
    RUNTIME_MARKED = "RuntimeMarked"

    # Nothing to do.
    UP_TO_DATE = "UpToDate"
    NOT_FOR_THIS_STEP = "NotForThisStep"
    DELETED = "Deleted"  # or being deleted: the object, its owner or its namespace
    FINISHED = "Finished"  # the owner: none of its pods will run again
    NOT_MARKED = "NotMarked"  # no pod template has group labels, or the label says `none`
    CANNOT_BE_GROUPED = "CannotBeGrouped"  # by the API: their priority, nodeName, responders or name
    BRING_YOUR_OWN_GROUP = "BringYourOwnGroup"  # the pod templates name a PodGroup of the user's own
    UPSTREAM_GROUPS = "UpstreamGroups"  # the Job controller, or another one, groups these pods
    OTHER_SCHEDULER = "OtherScheduler"  # KAI, Volcano or coscheduling groups these pods
    MANAGED_ELSEWHERE = "ManagedElsewhere"  # `managedBy` names another controller, such as MultiKueue's
    AWAITING_JOBSET = "AwaitingJobSet"  # the event of the JobSet continues
    NOT_MUSTERS = "NotMusters"  # a Workload or PodGroup of a user's own, which Muster never writes
    SCALING_FLAGGED = "ScalingFlagged"  # `onScale: Flag`: minCount stays although the pods changed
    GANG_SIZE_FIXED = "GangSizeFixed"  # minCount is immutable in the served API (1.36, v1alpha2)

    # Requeued: the event must be delivered again.
    BEING_DELETED = "BeingDeleted"  # an object of that name

    # Giving up: fallback PodGroups are created, and the owner gets a condition.
    INVALID_POLICY = "InvalidPolicy"
    TOO_MANY_GROUPS = "TooManyGroups"  # for a Workload, or for one owner (policy/limits.py)
    WAITS_FOR_ITSELF = "WaitsForItself"  # parts of a gang wait for each other, or for index 0
    PODS_DIFFER = "PodsDiffer"  # of one group, in priority or schedulerName; the scheduler places none
    WORKLOAD_DOES_NOT_FIT = "WorkloadDoesNotFit"  # lacks a template, is one of two, or is of another owner
    REFUSED_BY_API = "RefusedByApi"  # the Workload or a PodGroup, as for an unknown priority class
    API_NOT_SERVED = "ApiNotServed"  # gates are removed and the Job runs as a plain Job

    # Of Events beside groups that were created.
    HOLDS_WHILE_WAITING = "HoldsWhileWaiting"  # two owners with such groups can block each other for ever
    ENDS_WHEN_EVICTED = "EndsWhenEvicted"  # a gang with more pods in a Job than its backoffLimit

    # Of conditions.
    POD_GROUPS_EXIST = "PodGroupsExist"
    FIELDS_DROPPED = "FieldsDropped"  # a setting of the policy whose feature gate is off
    WAITING_FOR_POD_GROUP = "WaitingForPodGroup"  # or for its Workload, its parent or its count
    MEMBERS_LOST = "MembersLost"  # a placed gang has fewer pods than its minCount: failed or evicted
    WAITING_FOR_PODS = "WaitingForPods"  # also while a later replicatedJob has none yet
    WAITING_FOR_SCHEDULER = "WaitingForScheduler"  # it has written no status yet
    GROUPS_IGNORED = "GroupsIgnored"  # kube-scheduler lacks the feature gates and bound pods one by one
    SCHEDULING_GATED = "SchedulingGated"  # by gates of Muster or of others
    UNSCHEDULABLE = "Unschedulable"
    SCHEDULING_TIMED_OUT = "SchedulingTimedOut"  # longer than schedulingTimeoutSeconds of the policy
    SCHEDULER_ERROR = "SchedulerError"  # the scheduler cannot handle a group
    SCHEDULED = "Scheduled"  # every group was placed and every pod of it is bound

    # Of the runtime: in logs, metrics and answers.
    SWEPT = "Swept"  # the message counts the reasons of its objects
    UNREADABLE_EVENT = "UnreadableEvent"  # no CloudEvent, one without a valid object, or more than 4 MiB
    CONFLICT = "Conflict"  # 409: written or created in between, at every attempt of the step
    UNAVAILABLE = "Unavailable"  # the API server: 410, 429, 5xx, no answer, or not by the deadline
    WRITE_LIMIT = "WriteLimit"  # of one event; the next delivery continues
    FORBIDDEN = "Forbidden"  # 401, or 403 by RBAC, an admission plugin or a quota
    UNREADABLE_OBJECT = "UnreadableObject"  # a field of a type that no API server would have stored
    UNEXPECTED_ERROR = "UnexpectedError"  # a bug, with its trace in the log
    PERMISSION_MISSING = "PermissionMissing"  # at the start of a function
    PERMISSIONS_GRANTED = "PermissionsGranted"
    DEAD_LETTER_STORED = "DeadLetterStored"  # for `muster redrive`
