"""The stories there are."""

from __future__ import annotations

from muster.local.stories.scene import Scene, Story
from muster.simulator.controllers import node


def _runs(scene: Scene) -> None:
    """The user creates something, and its pods run together."""
    scene.create_manifest()
    scene.until("all pods of every group are bound", scene.all_bound)
    scene.until("the owner says that all groups are scheduled", scene.told)


def _runs_after_initializers(scene: Scene) -> None:
    """The trainer's PodGroup waits, long before its pods exist, until both initializers are done."""
    scene.create_manifest()
    scene.until(
        "the initializers are bound while the trainer has no pods",
        lambda: (
            scene.bound("dataset-initializer")
            and scene.bound("model-initializer")
            and not scene.pods("trainer")
        ),
    )
    scene.until(
        "the owner says that it waits for the trainer's pods",
        lambda: scene.says("PodGroupsScheduled", "False", "WaitingForPods"),
    )
    scene.until("all pods of the trainer are bound", scene.all_bound)
    scene.until("the owner says that all groups are scheduled", scene.told)


def _runs_once_there_is_room(scene: Scene) -> None:
    """Four pods, room for three: none is bound until a fourth node comes."""
    scene.create_manifest()
    scene.until(
        "the owner says that there is no room",
        lambda: scene.says("PodGroupsScheduled", "False", "Unschedulable"),
    )
    scene.expect("no pod is bound while there is no room for all", scene.bound("main") == 0)
    scene.create(node("node-4", cpu="8", memory="32Gi", gpu=4))
    scene.until("with a fourth node all pods are bound", scene.all_bound)
    scene.until("the owner says that all groups are scheduled", scene.told)


STORIES = (
    Story("torch", "a torch TrainJob of three nodes", ("TrainJob", "llama"), {"trainer": 3}, _runs),
    Story(
        "torchtune",
        "a torchtune TrainJob whose initializers run first",
        ("TrainJob", "qwen"),
        {"dataset-initializer": 0, "model-initializer": 0, "trainer": 2},
        _runs_after_initializers,
    ),
    Story(
        "mpi",
        "an MPI TrainJob: a launcher and two more nodes",
        ("TrainJob", "deepspeed"),
        {"launcher": 1, "node": 2},
        _runs,
    ),
    Story("indexed-job", "a plain Indexed Job of four pods", ("Job", "sweep"), {"main": 4}, _runs),
    Story(
        "does-not-fit",
        "a gang that does not fit, until it does",
        ("Job", "big"),
        {"main": 4},
        _runs_once_there_is_room,
    ),
)


def story_named(name: str) -> Story:
    """A story.

    Raises:
        LookupError: there is none of that name; the message names those there are.
    """
    found = next((story for story in STORIES if story.name == name), None)
    if found is None:
        raise LookupError(f"no story is called {name!r}; there are {', '.join(one.name for one in STORIES)}")
    return found
