"""What docs/performance.md reports: each figure with its target and the command that gives it."""

from studies.performance_results import Row

_R2D2 = "learner --agent=r2d2"
_IMPALA = "learner --agent=impala"
_BFLOAT16 = f"{_R2D2} --r2d2.precision=bfloat16"
_SMALL = " --r2d2.batch_size=16"
_SHALLOW = " --impala.torso=shallow --impala.lstm_size=256"
_RUN = "end_to_end --impala.lstm_size=256 --agent=impala --peer=sample_factory --runs=2"
_FAST = (
    "end_to_end --agent=impala --impala.lstm_size=256 --impala.batch_size=32 --impala.length=20 "
    "--impala.queue_size=64 --impala.precision=bfloat16 --num_actors=128 --actors_per_node=64 "
    "--peer=sample_factory --runs=2"
)
_CONTROL = (
    "end_to_end --agent=impala --env=control:cartpole/swingup --impala.lstm_size=0 "
    "--impala.hidden_sizes=256,256 --num_actors=16 --actors_per_node=16 --peer=sb3_ppo"
)
_CATCH = "startup --agent=impala --env=catch --before=../before"
_PONG = "startup --agent=impala --env=atari:pong --before=../before"
_PROCESSES = " --num_actors=256 --actors_per_node=1 --runs=1"
_REPLAYED = "end_to_end --agent=r2d2 --r2d2.samples_per_insert=0.4"
_ACTOR = "actor --agent=r2d2 --num_environments=1,4,16,64,256"
_REPLAY = "replay --agent=r2d2 --num_shards=1"
_GPU = "--device=gpu --rounds=4 --turn_seconds=0.5"


def _against(peer: str, text: str, command: str, target: str = "") -> Row:
    return Row(text, f"{command} --peer={peer}", "learner", "peer", "learner_to_peer", target)


def _of_roof(text: str, command: str, target: str = "") -> Row:
    return Row(text, command, "useful_work", _roof(command), "share_of_roof", target)


def _roof(command: str) -> str:
    """The figure that the roof of a learner's command is."""
    return "matmul_bfloat16" if "precision=bfloat16" in command else "matmul_float32"


HEADLINES = [
    _against("acme", "R2D2 step, float32, and Acme's", _R2D2, "2.1"),
    _against("pytorch", "R2D2 step, float32, and PyTorch's", _R2D2, "1.6"),
    _of_roof(
        "R2D2 step, float32, useful work and the roof", f"{_R2D2} --peer=acme", "78%, stretch 85%"
    ),
    _against("acme", "R2D2 step, bfloat16, and Acme's", _BFLOAT16, "3.2"),
    _against(
        "pytorch --peer_bfloat16",
        "R2D2 step, bfloat16, and PyTorch's in bfloat16",
        _BFLOAT16,
        "1.5",
    ),
    _of_roof(
        "R2D2 step, bfloat16, useful work and the roof",
        f"{_BFLOAT16} --peer=acme",
        "60%, stretch 70%",
    ),
    Row(
        "IMPALA (shallow, LSTM) acting and learning, bfloat16, the paper's batches, 128 "
        "environments, and Sample Factory",
        _FAST,
        "steps",
        "peer_steps",
        "run_to_peer",
        "2.5",
    ),
    Row(
        "the same in float32, batches of 8, 32 environments",
        _RUN,
        "steps",
        "peer_steps",
        "run_to_peer",
        "2.5",
    ),
    Row(
        "256 environments with inference, and what both cost apart",
        _ACTOR,
        "both, 256",
        ratio="share of the parts, 256",
        target="90%",
    ),
]

ROWS = [
    *HEADLINES,
    _against("acme_unpadded", "the same with an unpadded network in Acme's learner", _R2D2),
    _against("acme", "batch 16, float32, and Acme's", _R2D2 + _SMALL, "3.5"),
    _against("acme", "batch 16, bfloat16, and Acme's", _BFLOAT16 + _SMALL, "5"),
    _against("acme_unpadded", "batch 16, float32, unpadded", _R2D2 + _SMALL),
    _against("pytorch_tuned", "R2D2 step, float32, and tuned PyTorch's", _R2D2),
    _against(
        "pytorch_tuned --peer_bfloat16",
        "R2D2 step, bfloat16, and tuned PyTorch's in bfloat16",
        _BFLOAT16,
    ),
    _against("pytorch", "batch 16, float32, and PyTorch's", _R2D2 + _SMALL),
    Row(
        "R2D2 step fed by replay, priorities written back; lost by it",
        f"{_R2D2} --with_replay",
        "learner_with_replay",
        ratio="lost_to_replay",
        target="at most 5%",
    ),
    Row(
        "R2D2 step, bfloat16, beside 32 actor nodes that fetch parameters; lost to them",
        f"{_BFLOAT16} --num_clients=32 --turn_seconds=10",
        "learner_with_clients",
        ratio="lost_to_clients",
        target="at most 5%",
    ),
    Row(
        "R2D2's first step, traced, and Acme's",
        f"{_R2D2} --peer=acme",
        "first_step",
        "peer_first_step",
        target="under 15 s",
    ),
    *(
        _against(
            f"pytorch_{peer}{bfloat16}",
            f"{name}, {precision}, and {peer} PyTorch's",
            f"learner --agent={agent}{settings}{f' --{agent}.precision=bfloat16' * bool(bfloat16)}",
        )
        for name, agent, settings in (
            ("IMPALA's step, shallow, LSTM", "impala", _SHALLOW),
            ("IMPALA's step, deep", "impala", ""),
            ("PopArt's step, deep", "popart", ""),
            ("MultiHead's step, deep", "multihead_impala", ""),
            ("IMPALA's step, deep, pixel control", "impala", " --impala.pixel_control_cost=0.01"),
        )
        for precision, bfloat16 in (("float32", ""), ("bfloat16", " --peer_bfloat16"))
        for peer in ("tuned", "compiled")
    ),
    Row(
        "one inference for one environment, and Acme's actor",
        f"{_ACTOR} --peer=acme",
        "inference, 1",
        "peer's inference, 1",
        "inference to peer's, 1",
    ),
    *(
        Row(
            f"from command to IMPALA's first {what} step on {game}, and before nodes were forks",
            command,
            f"first_{what}_step",
            f"first_{what}_step_before",
            target=target,
        )
        for game, command in (("catch", _CATCH), ("Pong", _PONG))
        for what, target in (("acting", "10 s"), ("learner", ""))
    ),
    Row("its end when it is interrupted", _CATCH, "end_when_interrupted", target="5 s"),
    Row("its end when its learner is killed", _CATCH, "end_after_a_crash", target="8 s"),
    *(
        Row(f"256 processes of one actor on {game}: {what}", command, figure, target=target)
        for game, command in (
            ("catch", f"startup --agent=impala --env=catch{_PROCESSES}"),
            ("Pong", f"startup --agent=impala --env=atari:pong{_PROCESSES}"),
        )
        for what, figure, target in (
            ("from command until all act", "all_acting", "600 s"),
            ("memory, proportional", "memory", "20 GB"),
            ("their end when interrupted", "end_when_interrupted", "30 s"),
        )
    ),
    Row(
        "IMPALA's run (float32) and the sum of its parts",
        _RUN,
        "steps",
        "parts",
        "share_of_the_parts",
    ),
    Row(
        "IMPALA without an LSTM acting and learning on cartpole/swingup, 16 environments in one "
        "node, and Stable-Baselines3's PPO",
        _CONTROL,
        "steps",
        "peer_steps",
        "run_to_peer",
    ),
    Row(
        "R2D2 acting and learning, 32 environments in one process, and the sum of its parts",
        _REPLAYED,
        "steps",
        "parts",
        "share_of_the_parts",
    ),
    Row(
        "the same with 64 in two processes",
        f"{_REPLAYED} --num_actors=64 --actors_per_node=32 --runs=2",
        "steps",
        "parts",
        "share_of_the_parts",
        "90%",
    ),
    Row("its replays of each observation", _REPLAYED, "replays_per_observation", target="0.8"),
    Row(
        "memory of 100,000 items of Atari",
        _REPLAY,
        "memory of 100000 items, 1",
        target="at most 5.5 GB",
    ),
    Row("sampled by one client", _REPLAY, "sampled, 1", target="1,200 items/s"),
    Row("the same as batches of a learner", _REPLAY, "batches, 1"),
    Row("sampled from four shards", f"{_REPLAY},2,4", "sampled, 4"),
]

GPU_ROWS = [
    _against("pytorch_tuned", "R2D2 step, float32, and tuned PyTorch's", f"{_R2D2} {_GPU}"),
    _against(
        "pytorch_tuned --peer_bfloat16",
        "R2D2 step, bfloat16, and tuned PyTorch's in bfloat16",
        f"{_BFLOAT16} {_GPU}",
    ),
    _against(
        "pytorch_tuned", "IMPALA's step, deep, float32, and tuned PyTorch's", f"{_IMPALA} {_GPU}"
    ),
    _against(
        "pytorch_tuned --peer_bfloat16",
        "IMPALA's step, deep, bfloat16, and tuned PyTorch's in bfloat16",
        f"{_IMPALA} --impala.precision=bfloat16 {_GPU}",
    ),
    _of_roof(
        "R2D2 step, float32, useful work and the roof", f"{_R2D2} {_GPU} --peer=pytorch_tuned"
    ),
    Row(
        "R2D2's first step, compiled",
        f"{_R2D2} {_GPU} --peer=pytorch_tuned",
        "first_step",
        "peer_first_step",
    ),
]
