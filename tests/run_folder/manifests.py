"""A manifest as a saver writes it; the files that it names are nowhere."""

from run_folder.checkpoints import Manifest

MANIFEST = Manifest(
    agent="r2d2",
    learner_step=20,
    learner="learner-r2d2/20",
    replay=None,
    replay_items=0,
    replay_saved_at=0.0,
    replay_seconds=0.0,
    actor_steps=200,
    episodes=5,
    trained_steps=100,
    walltime=2.0,
    sizes={"learner-r2d2/20.index": 1, "learner-r2d2/20.data-00000-of-00001": 1},
)
