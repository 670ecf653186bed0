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
    ORPHANS_REMOVED = "OrphansRemoved"  # the owner of the object is gone or was rebuilt
    FALLBACK_CREATED = "FallbackCreated"  # for stamped pods that Muster does not group
    RUNTIME_MARKED = "RuntimeMarked"

    # Nothing to do.
    UP_TO_DATE = "UpToDate"
    NOT_FOR_THIS_STEP = "NotForThisStep"
    OBJECT_GONE = "ObjectGone"  # or an object of another UID has its name
    DELETED = "Deleted"  # the object, its owner or its namespace is being deleted
    FINISHED = "Finished"  # the owner: none of its pods will run again
    NOT_MARKED = "NotMarked"  # no pod template has group labels, and mark-jobs does not add them
    OPTED_OUT = "OptedOut"  # the pod templates have the group label `none`
    BRING_YOUR_OWN_GROUP = "BringYourOwnGroup"  # the pod templates name a PodGroup of the user's own
    OWN_WORKLOAD = "OwnWorkload"  # a Workload of the user's own, which Muster never writes
    UPSTREAM_GROUPS = "UpstreamGroups"  # the Job controller, or another one, groups these pods
    OTHER_SCHEDULER = "OtherScheduler"  # KAI, Volcano or coscheduling groups these pods
    PRIORITY_TOO_HIGH = "PriorityTooHigh"  # a system-* class, for which the API refuses groups
    EVICTION_RESPONDERS = "EvictionResponders"  # the API refuses them beside a schedulingGroup
    NODE_NAMED = "NodeNamed"  # no scheduler sees these pods, and the API refuses gates beside nodeName
    NAME_TOO_LONG = "NameTooLong"  # for a label of its pods, by which they are stamped
    MANAGED_ELSEWHERE = "ManagedElsewhere"  # `managedBy` names another controller, such as MultiKueue's
    OWNED_BY_ANOTHER = "OwnedByAnother"  # something else controls the Job, which has no group label
    AWAITING_JOBSET = "AwaitingJobSet"  # the event of the JobSet continues
    AWAITING_WORKLOAD = "AwaitingWorkload"  # the event of its creation continues
    AWAITING_POD_GROUP = "AwaitingPodGroup"  # of a gated pod, or a group above it; its event continues
    AWAITING_MEMBERS = "AwaitingMembers"  # a group that was placed before gets its new pods together
    AWAITING_RESIZE = "AwaitingResize"  # a group that was placed before has the wrong minCount
    NOT_MUSTERS = "NotMusters"  # not created by Muster, so not changed; a PodGroup of somebody else's
    SCALING_FLAGGED = "ScalingFlagged"  # `onScale: Flag`: minCount stays although the pods changed
    GANG_SIZE_FIXED = "GangSizeFixed"  # minCount is immutable in the served API (1.36, v1alpha2)

    # Requeued: the event must be delivered again.
    BEING_DELETED = "BeingDeleted"  # an object of that name
    LEFTOVER_REMOVED = "LeftoverRemoved"  # a Workload of the name, of an earlier owner

    # Giving up: fallback PodGroups are created, and the owner gets a condition.
    INVALID_POLICY = "InvalidPolicy"
    EXCLUSIVE_PLACEMENT = "ExclusivePlacement"  # JobSet's: all other pods wait until one is bound
    TOO_MANY_GROUPS = "TooManyGroups"  # for a Workload, or for one owner (policy/limits.py)
    WAITS_FOR_ITSELF = "WaitsForItself"  # replicatedJobs of a gang wait for each other
    PRIORITIES_DIFFER = "PrioritiesDiffer"  # of pods of one group; the scheduler places none of them
    SCHEDULERS_DIFFER = "SchedulersDiffer"  # schedulerNames of pods of one group
    WORKLOAD_NAME_TAKEN = "WorkloadNameTaken"  # by a Workload of somebody else or for another owner
    TWO_WORKLOADS = "TwoWorkloads"  # name the owner, so it is unclear which to use
    WORKLOAD_DOES_NOT_FIT = "WorkloadDoesNotFit"  # it lacks a template for a group of stamped pods
    REFUSED_BY_API = "RefusedByApi"  # the Workload or a PodGroup, as for an unknown priority class
    API_NOT_SERVED = "ApiNotServed"  # gates are removed and the Job runs as a plain Job

    # Of Events beside groups that were created.
    HOLDS_WHILE_WAITING = "HoldsWhileWaiting"  # two owners with such groups can block each other for ever

    # Of conditions.
    POD_GROUPS_EXIST = "PodGroupsExist"
    FIELDS_DROPPED = "FieldsDropped"  # a setting of the policy whose feature gate is off
    WAITING_FOR_POD_GROUP = "WaitingForPodGroup"
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
    UNREADABLE_EVENT = "UnreadableEvent"  # no CloudEvent, or one without a valid object
    BODY_TOO_LARGE = "BodyTooLarge"  # more than 4 MiB
    CONFLICT = "Conflict"  # 409: the object was written in between, at every attempt of the step
    ALREADY_EXISTS = "AlreadyExists"  # 409: the name was taken in between, at every attempt of the step
    TOO_MANY_REQUESTS = "TooManyRequests"  # 429
    UNAVAILABLE = "Unavailable"  # 5xx, a timeout, or no connection to the API server
    EXPIRED = "Expired"  # 410: a list took so long that its resourceVersion expired
    DEADLINE_EXCEEDED = "DeadlineExceeded"  # MUSTER_DEADLINE_SECONDS
    WRITE_LIMIT = "WriteLimit"  # of one event; the next delivery continues
    UNAUTHORIZED = "Unauthorized"  # 401
    FORBIDDEN = "Forbidden"  # 403: by RBAC, an admission plugin or a quota
    INVALID = "Invalid"  # 400, 413, 415 or 422: the request will never be accepted. A bug
    UNREADABLE_OBJECT = "UnreadableObject"  # a field of a type that no API server would have stored
    UNEXPECTED_ERROR = "UnexpectedError"  # the log has the trace. A bug
    PERMISSION_MISSING = "PermissionMissing"  # at the start of a function
    PERMISSIONS_GRANTED = "PermissionsGranted"
    DEAD_LETTER_STORED = "DeadLetterStored"  # for `muster redrive`
    DEAD_LETTER_KNOWN = "DeadLetterKnown"  # brokers deliver more than once
