"""What a training loop holds: `step()` once for each optimizer step, and the decisions so far."""

import contextlib
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noisescale.guard import Faults, never_raises
from noisescale.run.run import Run
from noisescale_core.errors import ConfigError
from noisescale_core.theory.learning_rate import BatchChange
from noisescale_lab.follow.agreement import RankAgreement
from noisescale_lab.follow.batches import Batches
from noisescale_lab.follow.books import Books, Decision
from noisescale_lab.follow.kept_weights import KeptWeights
from noisescale_lab.follow.look import Plan, Sight, look, settled
from noisescale_lab.follow.memory import Memory
from noisescale_lab.follow.policy import unwatched
from noisescale_lab.follow.scheduled_rates import Companion, FirstValues, ScheduledRates, first_values, follow_batch

if TYPE_CHECKING:
    import torch

STATE_VERSION = 2

COPY_FAILED = "failed by an error of ours, which the log has"

RATE_TOLERANCE = 0.05
"""A learning rate that comes back to within this share of the old one was set by somebody else."""


class Follower:
    """Follows the policy in one run; made by `noisescale.follow()`.

    Args:
        run: Whose measurements are followed.
        optimizer: Whose learning rates are scaled.
        scheduler: What sets them; None: nothing, or the loop itself.
        plan: What was said at the start.
        agreement: Who decides.
        batches: What the job can change its batch to; None: nothing.
        also: What else follows the batch.
        progress: Told each decision in words.

    Attributes:
        faults: Our own errors, those of the run.
        decisions: What was changed, or would have been, the oldest first.
        batch_size: Global batch to train with now, in examples.
    """

    def __init__(
        self,
        run: Run,
        optimizer: "torch.optim.Optimizer",
        scheduler: object | None,
        plan: Plan,
        agreement: RankAgreement,
        *,
        batches: Batches | None,
        also: Sequence[Companion],
        progress: Callable[[str], None],
    ) -> None:
        self.faults: Faults = run.faults
        self.decisions: list[Decision] = []
        self.batch_size = plan.first_batch
        self._run, self._plan, self._agreement = run, plan, agreement
        self._batches, self._also = batches, tuple(also)
        self._progress = progress
        self._optimizer = optimizer
        self._rates = ScheduledRates(optimizer, scheduler)
        self._first_values: FirstValues = first_values(optimizer.param_groups)
        self._rate_to_check: tuple[float, float] | None = None
        self._kept: KeptWeights | None = None
        self._has_said_why_no_copy = False
        self._steps = 0
        rate = self._rates.scheduled()
        self._books = Books(
            steps=0,
            next_look=plan.next_look(0),
            examples=0.0,
            batch=plan.first_batch,
            rate_factor=1.0,
            memory=Memory.at_start(batch=plan.first_batch, learning_rate=1.0, settings=plan.settings),
            highest_rate=rate,
            last_rate=rate,
        )
        self._due = self._books.next_look

    # ---- what `never_raises` asks

    @property
    def is_recording(self) -> bool:
        """Always: whether a rank's run is finished must not decide whether it takes part in a broadcast."""
        return True

    def leave_out(self, call: str) -> None:
        """Leave no call out."""

    # ---- for the loop

    @property
    def accumulation_steps(self) -> int:
        """Micro-batches of each device in a step of the present batch."""
        return 1 if self._batches is None else self.batch_size // self._batches.whole

    @property
    def learning_rate_factor(self) -> float:
        """On the learning rates that the run began with; for loops that set the rate themselves."""
        return self._rates.factor

    @property
    def why(self) -> str:
        """What the last look found, in words."""
        return self._books.why

    def __str__(self) -> str:
        mode = "dry run, nothing is changed" if self._plan.is_dry_run else "acting"
        found = [f"{len(self.decisions)} decisions in {self._books.num_looks} looks ({mode}); last look: {self.why}"]
        return "\n".join([*map(str, self.decisions), *found])

    def step(self) -> None:
        """An optimizer step is over: call it once for each, on every rank, after the scheduler's own step."""
        self._steps += 1
        if self._steps >= self._due:
            self._at_due_step()

    @never_raises
    def _at_due_step(self) -> None:
        self._due = self._steps + 1  # should anything fail, the next step tries again
        if self._rate_to_check is not None:
            self._check_rate(*self._rate_to_check)
        if self._books.waiting is None and self._steps >= self._books.next_look:
            self._look()
        if self._books.waiting is not None:
            self._carry_out(self._books.waiting)
        has_work = self._books.waiting is not None or self._rate_to_check is not None
        self._due = self._steps + 1 if has_work else self._books.next_look

    # ---- deciding

    def _look(self) -> None:
        postponed = replace(self._books, next_look=self._plan.next_look(self._steps))
        found = self._decide() if self._agreement.is_first else None
        with self._among_ranks():
            self._books, decision = self._agreement.from_first(found or (postponed, None))
        if self._books.memory.probation is None and not (decision is not None and decision.is_undo):
            self._kept = None
        if decision is not None and self._plan.is_dry_run:
            self._books = replace(self._books, batch=decision.to_batch, rate_factor=decision.to_rate_factor)
            self._keep(replace(decision, also=self._others(decision)[1]))
        elif decision is not None:
            self._books = replace(self._books, waiting=decision)

    @contextlib.contextmanager
    def _among_ranks(self) -> Iterator[None]:
        """Ask the others; should the ranks lose each other inside, nobody waits for them again."""
        self._due = sys.maxsize
        yield
        self._due = self._steps + 1

    @never_raises
    def _decide(self) -> tuple[Books, Decision | None]:
        sight = self._sight()
        if sight is None:
            return replace(self._books, next_look=self._plan.next_look(self._steps)), None
        return look(self._books, sight, self._plan)

    def _sight(self) -> Sight | None:
        standing = self._run.standing()
        if standing is None:
            return None
        return Sight(self._steps, self.batch_size, self._rates.factor, self._rates.scheduled(), standing)

    def _others(self, decision: Decision) -> tuple[list[Mapping[str, Any]], tuple[str, ...]]:
        """What else each group gets with a new batch, and that in words."""
        if not self._also or decision.critical_batch is None:
            return [], ()
        change = BatchChange(self._plan.first_batch, decision.to_batch, decision.critical_batch)
        found = follow_batch(self._also, self._first_values, self._plan.optimizer, change, decision.to_rate_factor)
        return [group.values for group in found], tuple(dict.fromkeys(s for group in found for s in group.sentences))

    # ---- acting

    def _carry_out(self, decision: Decision) -> None:
        """Change batch, rate and the rest, once the job is ready; where the loop cannot, all stays as it was."""
        decision = self._with_batch_of_an_undo(decision) if decision.is_undo else decision
        if decision.to_batch != self.batch_size and not self._is_ready_for(decision.to_batch):
            return
        decision = self._with_copy(decision) if decision.is_on_probation else decision
        # should the loop's own function fail, nothing was raised: nothing is on probation, and the next look asks again
        asked = self._books.memory
        upcoming, not_raised = self._plan.next_look(self._steps), replace(asked, probation=None)
        self._books = replace(self._books, waiting=None, next_look=upcoming, memory=not_raised)
        others, sentences = self._others(decision)
        decision = self._with_batch_set(decision)
        upcoming = upcoming if decision.look_after is None else self._steps + decision.look_after
        self._books = replace(self._books, next_look=upcoming, memory=asked)
        if decision.is_undo:
            decision = replace(decision, is_put_back=self._put_back())
        self._settle(decision)
        before = self._rates.scheduled() * self._rates.factor
        self._rates.scale_to(decision.to_rate_factor)
        for group, values in zip(self._optimizer.param_groups, others, strict=False):
            group.update(values)
        self._rate_to_check = before, before * decision.to_rate_factor / decision.from_rate_factor
        self._keep(replace(decision, step=self._steps, also=sentences))

    def _is_ready_for(self, batch: int) -> bool:
        may_change = None if self._batches is None else self._batches.may_change
        return may_change is None or may_change(batch)

    def _with_batch_of_an_undo(self, decision: Decision) -> Decision:
        """An undo does not wait: where the job cannot go back to the batch now, it keeps the present one."""
        may_shrink = self._batches is not None and self._batches.may_shrink
        can = decision.to_batch > self.batch_size or may_shrink
        if decision.to_batch == self.batch_size or (can and self._is_ready_for(decision.to_batch)):
            return decision
        return replace(decision, to_batch=self.batch_size)

    def _with_batch_set(self, decision: Decision) -> Decision:
        """Tell the loop of another batch; where its function fails, an undo goes back to rate and weights alone."""
        if decision.to_batch == self.batch_size or self._batches is None or self._batches.set is None:
            return decision
        if not decision.is_undo:
            self._batches.set(decision.to_batch)
        elif not self._sets(self._batches.set, decision.to_batch):
            return replace(decision, to_batch=self.batch_size)
        return decision

    @never_raises
    def _sets(self, change: Callable[[int], None], batch: int) -> bool:
        change(batch)
        return True

    def _with_copy(self, decision: Decision) -> Decision:
        """A raise on probation once all ranks have a copy of their weights; else, on all of them, one without."""
        self._kept = None  # of the raise before: two at once would take twice the memory
        problem = self._copy_weights()
        with self._among_ranks():
            problems = self._agreement.from_all(COPY_FAILED if problem is None else problem)
        if not any(problems):
            self._books = replace(self._books, kept_stretches=self._books.stretches)
            return decision
        self._kept = None
        self._say_why_no_copy(problems)
        settings = self._plan.settings
        rate, memory = unwatched(
            self._books.memory,
            settings,
            from_rate=decision.from_rate_factor,
            to_rate=decision.to_rate_factor,
            is_of_batch=decision.to_batch != decision.from_batch,
        )
        most = f"without a copy of the weights the rate rises by {settings.most_without_undo:.3g} × at most"
        reason = f"{decision.reason}; {most}"
        self._books = replace(self._books, memory=memory, why=reason)
        return replace(decision, to_rate_factor=rate, reason=reason, is_on_probation=False, look_after=None)

    @never_raises
    def _copy_weights(self) -> str:
        """Keep a copy; why it did not fit, empty where it did."""
        model = self._model()
        try:
            self._kept = KeptWeights(self._optimizer, model)
        except (RuntimeError, MemoryError) as problem:  # PyTorch's own for a device's memory is a RuntimeError
            first_line = str(problem).split("\n")[0]
            return f"did not fit: {first_line or type(problem).__name__}"
        return ""

    @never_raises  # the other ranks go on, whatever `progress` does here
    def _say_why_no_copy(self, problems: Sequence[str]) -> None:
        if self._agreement.is_first and not self._has_said_why_no_copy:
            rank, problem = next((rank, problem) for rank, problem in enumerate(problems) if problem)
            self._progress(f"a copy of the weights{f' of rank {rank}' if len(problems) > 1 else ''} {problem}")
        self._has_said_why_no_copy = True

    def _put_back(self) -> bool:
        """Weights and states as they were kept; whether there is a copy in this process."""
        if self._kept is None:
            return False
        self._kept.put_back()
        self._kept = None
        self._books = replace(self._books, stretches=self._books.kept_stretches)
        return True

    def _model(self) -> "torch.nn.Module | None":
        standing = self._run.standing()
        return None if standing is None else standing.model

    def _settle(self, decision: Decision) -> None:
        """Close the stretch of the settings before, and begin that of the new ones."""
        if self._steps > self._books.steps:  # it has waited
            books = self._closed() if self._agreement.is_first else None
            with self._among_ranks():
                self._books = self._agreement.from_first(books or self._books)
        books = self._books
        examples = books.examples + (self._steps - books.steps) * self.batch_size
        self.batch_size = decision.to_batch
        self._books = replace(
            books, steps=self._steps, examples=examples, batch=decision.to_batch, rate_factor=decision.to_rate_factor
        )

    @never_raises
    def _closed(self) -> Books | None:
        sight = self._sight()
        return None if sight is None else settled(self._books, sight, self._plan)

    def _keep(self, decision: Decision) -> None:
        self.decisions.append(decision)
        self._run.log_metrics(None, **decision.metrics())
        if self._agreement.is_first:
            self._progress(str(decision))

    def _check_rate(self, before: float, after: float) -> None:
        """Say so where something else has put the old learning rate back."""
        self._rate_to_check = None
        now = self._rates.scheduled() * self._rates.factor
        if min(now, before) > 0 and abs(math.log(now / before)) < RATE_TOLERANCE < abs(math.log(after / before)):
            self._progress(
                f"the learning rate is back at {now:.4g} after it was set to {after:.4g}: something else sets it. Hand "
                "it over as scheduler=, or multiply it by follower.learning_rate_factor"
            )

    # ---- resuming

    def state_dict(self) -> dict[str, Any]:
        """All that a resumed job needs beside the states of optimizer and scheduler; plain values.

        The copy of the weights that a raise on probation could go back to is not in it: a job that resumes goes back to
        the batch and the rate alone.
        """
        return {
            "version": STATE_VERSION,
            "steps": self._steps,
            "batch_size": self.batch_size,
            "learning_rate_factor": self._rates.factor,
            "first_values": [dict(values) for values in self._first_values],
            "books": self._books.to_state(),
            "decisions": [decision.to_state() for decision in self.decisions],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a saved state, on every rank; optimizer and scheduler are loaded by the job itself.

        Tells `batches.set` the batch to go on with.

        Args:
            state_dict: From `state_dict()`.

        Raises:
            ConfigError: If another version wrote it.
        """
        if state_dict.get("version") != STATE_VERSION:
            raise ConfigError(
                f"version must be {STATE_VERSION}, got {state_dict.get('version')!r}: "
                "load the state with the noisescale that wrote it"
            )
        self._steps = state_dict["steps"]
        self._books = Books.from_state(state_dict["books"])
        if not self._plan.is_dry_run:  # a dry run may have saved it, whose decisions were not carried out
            factor, batch = state_dict["learning_rate_factor"], state_dict["batch_size"]
            if factor != self._books.rate_factor or batch != self._books.batch:
                memory = replace(self._books.memory, anchor_batch=batch, anchor_rate=factor, probation=None)
                self._books = replace(self._books, batch=batch, rate_factor=factor, memory=memory)
        self._first_values = [dict(values) for values in state_dict["first_values"]]
        self.decisions = [Decision.from_state(decision) for decision in state_dict["decisions"]]
        self._rates.factor = state_dict["learning_rate_factor"]
        self._due = self._steps + 1
        is_told = self._batches is not None and self._batches.set is not None
        if state_dict["batch_size"] != self.batch_size and is_told:
            assert self._batches is not None
            assert self._batches.set is not None
            self._batches.set(state_dict["batch_size"])
        self.batch_size = state_dict["batch_size"]
