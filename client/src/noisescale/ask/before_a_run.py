"""`noisescale.recommend()`: the batch to start with, from earlier runs of the task that a server knows."""

from typing import Literal, Unpack

from noisescale.ask.advisor import refused
from noisescale.ask.asking import RecommendingServer
from noisescale.ask.recommendation import Recommendation
from noisescale.config import Config
from noisescale_core.advice.question import Asked, Question
from noisescale_core.errors import ConfigError

NO_SERVER = "Earlier runs of a task are known to a server alone, and there is none: {why}."
TRAIN = "train a few hundred steps with watch() and ask run.recommendation()."
START_ONE = (
    "Start one with `noisescale up` on this machine, or give url= (NOISESCALE_URL) of one that has runs of this task. "
    f"Without it {TRAIN}"
)


def recommend(
    task: str | None = None,
    optimizer: str | None = None,
    project: str | None = None,
    *,
    url: str | None = None,
    api_key: str | None = None,
    mode: Literal["online", "offline", "disabled"] | None = None,
    server: RecommendingServer | None = None,
    **asked: Unpack[Asked],
) -> Recommendation:
    """Which batch size to begin a run with, from earlier runs and sweeps of its task; print it.

    Args:
        task: What is trained; NOISESCALE_TASK.
        optimizer: Class of the optimizer, "AdamW".
        project: NOISESCALE_PROJECT.
        url: Address of the server; NOISESCALE_URL.
        api_key: NOISESCALE_API_KEY.
        mode: "offline" and "disabled" ask nobody; NOISESCALE_MODE.
        server: Stands in for the server.
        asked: What a step is worth, and what limits the run: see `docs/recommendations.md`.

    Raises:
        ConfigError: For a wrong argument.
    """
    config = Config.from_env(project=project, task=task, url=url, api_key=api_key, mode=mode)
    question = Question.of(asked)
    if optimizer is not None and not isinstance(optimizer, str):
        raise ConfigError(f"optimizer must be the name of its class, such as 'AdamW', got {optimizer!r}")
    if config.mode != "online":
        return _without_server(f"mode {config.mode!r} asks none")
    found = (server or RecommendingServer(config)).of_task(config.project, config.task, question, optimizer=optimizer)
    if isinstance(found, Recommendation):
        return found
    if found.is_refusal:
        return refused(found.why)
    if found.was_there:
        return Recommendation(reason=f"{found.why}.", next_step=f"{TRAIN[0].upper()}{TRAIN[1:]}")
    return _without_server(found.why)


def _without_server(why: str) -> Recommendation:
    return Recommendation(reason=NO_SERVER.format(why=why), note=why, next_step=START_ONE)
