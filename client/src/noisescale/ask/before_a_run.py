"""`noisescale.recommend()`: the batch to start with, from earlier runs of the task that a server knows.

Of a language model also from published sweeps, without any server.
"""

from dataclasses import replace
from typing import Literal, Unpack

from noisescale.ask.advisor import refused
from noisescale.ask.asking import RecommendingServer
from noisescale.ask.recommendation import Recommendation
from noisescale.config import Config
from noisescale_core.advice.language_model import PlannedModel
from noisescale_core.advice.language_model import recommend as of_language_model
from noisescale_core.advice.question import Asked, Question
from noisescale_core.errors import ConfigError, DomainError

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
    tokens: float | None = None,
    params: float | None = None,
    sequence_length: int = 1,
    mixture_of_experts: bool = False,
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
        tokens: That a language model is to be trained on: then published sweeps answer where no task is named, or a
            server knows nothing of it, and none is needed.
        params: Of the model; without tokens, 20 each are assumed.
        sequence_length: Tokens of an example; batches are in examples.
        mixture_of_experts: Each token goes to some of them.
        asked: What a step is worth, and what limits the run: see `docs/recommendations.md`.

    Raises:
        ConfigError: For a wrong argument.
    """
    config = Config.from_env(project=project, task=task, url=url, api_key=api_key, mode=mode)
    question = Question.of(asked)
    if optimizer is not None and not isinstance(optimizer, str):
        raise ConfigError(f"optimizer must be the name of its class, such as 'AdamW', got {optimizer!r}")
    published = None
    if tokens is not None or params is not None:
        published = _published(tokens, params, sequence_length, optimizer, question, is_mixture=mixture_of_experts)
        if task is None:
            return published
    if config.mode != "online":
        return published or _without_server(f"mode {config.mode!r} asks none")
    found = (server or RecommendingServer(config)).of_task(config.project, config.task, question, optimizer=optimizer)
    if isinstance(found, Recommendation) and (published is None or found.decision == "start"):
        return found
    if isinstance(found, Recommendation):
        return replace(published or found, note=found.reason)
    if found.is_refusal:
        return refused(found.why)
    if published is not None:
        return replace(published, note=found.why)
    if found.was_there:
        return Recommendation(reason=f"{found.why}.", next_step=f"{TRAIN[0].upper()}{TRAIN[1:]}")
    return _without_server(found.why)


def _published(
    tokens: float | None,
    params: float | None,
    sequence_length: int,
    optimizer: str | None,
    question: Question,
    *,
    is_mixture: bool,
) -> Recommendation:
    """The answer of published sweeps.

    Raises:
        ConfigError: Where they have none.
    """
    try:
        planned = PlannedModel(
            tokens=tokens,
            params=params,
            sequence_length=sequence_length,
            optimizer=optimizer or "adamw",
            is_mixture=is_mixture,
        )
        return Recommendation.of(of_language_model(planned, question), source="published")
    except DomainError as error:
        raise ConfigError(str(error)) from error


def _without_server(why: str) -> Recommendation:
    return Recommendation(reason=NO_SERVER.format(why=why), note=why, next_step=START_ONE)
