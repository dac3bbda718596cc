"""Squared norms of each example's own contribution to the gradient, one backward at a time.

A layer's input and the gradient with respect to its output determine what each example contributes. They meet when
autograd hands over a parameter's gradient: then all uses of the parameter have been seen, and nothing else has been
computed yet, so what a layer held is free again as early as without us. See docs/per_example.md.
"""

# B examples of a forward, b groups of examples, P covered parameters

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from noisescale.capture.duty_cycle import DutyCycle
from noisescale.capture.per_example.call_faults import fault_of
from noisescale.capture.per_example.checksum import NUM_PROVING_BACKWARDS, SumChecks
from noisescale.capture.per_example.contributions import Contribution, SummedTerms
from noisescale.capture.per_example.coverage import Layers, batch_norms, find_coverage
from noisescale.capture.per_example.fused_norm_layers import FusedNormLayers
from noisescale.capture.per_example.layer_calls import Forward, LayerCall, LayerCalls, current_graph_task
from noisescale.capture.per_example.layers.replayed import FOLLOWED
from noisescale.capture.per_example.left_out import (
    BLIND,
    ELSEWHERE,
    FOLLOWED_NOW,
    FOUND_OUT,
    HIDDEN,
    LOOK_IN_GRAPH,
    NO_EXAMPLES,
    NOT_CALLED,
    ONE_EXAMPLE,
    TWICE,
    UNEVEN,
    LeftOut,
    Remedy,
    message,
)
from noisescale.capture.per_example.squared_norms_of_sums import sq_norms_of_sum
from noisescale.kernels.preference import PREFERENCE, Kernels
from noisescale_core.errors import ConfigError


class PerExampleNorms:
    """Squared norms of each example's contribution to the gradient, from activations and output gradients.

    Attributes:
        is_incomplete: The last `take()` could not tell: its answer was None though a backward had run.
        reason: Why, as a clause; None with it.
        num_taken: Examples behind the last answer, of all forwards.
    """

    def __init__(
        self,
        model: nn.Module,
        parameters: Mapping[str, Tensor],
        *,
        on_fault: Callable[[Exception], None],
        layers: Layers = "all",
        examples_per_group: int = 1,
        fused_norm_layers: bool = False,
        kernels: Kernels | None = None,
        joins_forwards: bool = False,
        duty: Callable[[], DutyCycle | None] = lambda: None,
    ) -> None:
        """Put hooks on the model's layers.

        Args:
            model: Its input has the examples in the first dimension.
            parameters: Trainable ones to be measured, by their name in `model.named_parameters()`.
            on_fault: Told about a fault of ours inside a hook; the training never is.
            layers: All, or the normalisations only, whose noise scale is a proxy for the model's.
            examples_per_group: Adjacent examples that count as one, R: the rollouts of a prompt.
            fused_norm_layers: Replace the backward of the measured LayerNorms and RMSNorms by one that gives the norms,
                too. This changes the rounding of the training.
            kernels: Whose may be taken; None: what this process prefers.
            joins_forwards: Forwards of one size in one small batch count as one, example by example: two views of the
                same examples, or a real and a generated one. Else their examples come one after another.
            duty: What is told how long hooks take while it times steps.

        Raises:
            ConfigError: If examples_per_group is below 1.
        """
        if examples_per_group < 1:
            raise ConfigError(f"examples_per_group must be at least 1, got {examples_per_group}: 1 for single examples")
        coverage = find_coverage(model, parameters, layers)
        self.is_incomplete = False
        self.reason: str | None = None
        self._on_fault = on_fault
        self._duty = duty
        self._examples_per_group = examples_per_group
        self._joins_forwards = joins_forwards
        self._is_holding = False
        self.num_taken = 0
        self._kernels: Kernels = PREFERENCE.kernels if kernels is None else kernels
        self._num_parameters = len(parameters)
        self._num_elements = sum(parameter.numel() for parameter in parameters.values())
        self._left_out = coverage.left_out
        self._parameters = {name: parameters[name] for name in coverage.covered}
        self._batch_norms = batch_norms(model) if coverage.covered else []
        shapes = {name: FOLLOWED.shape(model, name) for name in coverage.followed} | {
            name: layer.rule.shape(layer.module, own)
            for layer in coverage.layers
            for own, name in layer.parameters.items()
        }
        self._used_inside = {
            name for layer in coverage.layers if layer.rule.inner_uses is not None for name in layer.parameters.values()
        }
        self._checks = SumChecks(self._parameters, shapes)
        self._num_blind_backwards = 0
        self.clear()
        self._calls = LayerCalls(
            model,
            coverage.layers,
            guard=self._guarded,
            see=self._see_output_gradient,
            see_reentrant=self._see_reentrant,
            refuse=self._refuse_uses,
        )
        self._why_refused: dict[str, tuple[Remedy, str]] = {}
        self._followed: set[str] = set()
        for name in coverage.followed:
            self._follow(name)
        self._fused_norm_layers: FusedNormLayers | None = None
        if fused_norm_layers:
            modules = [layer.module for layer in coverage.layers]
            self._fused_norm_layers = FusedNormLayers(modules, kernels=self._kernels, on_fault=on_fault)
        self._handles: dict[str, RemovableHandle] = {
            name: parameter.register_hook(self._leaf_hook(name)) for name, parameter in self._parameters.items()
        }

    @property
    def covered(self) -> list[str]:
        """Names of the parameters that are measured; may become fewer in the first backward passes."""
        return list(self._parameters)

    @property
    def message(self) -> str | None:
        """What is left out and why, and what is changed; None where nothing is."""
        changed = None if self._fused_norm_layers is None else self._fused_norm_layers.message
        return " ".join(part for part in (self._what_is_left_out(), changed) if part is not None) or None

    def pause(self, is_paused: bool) -> None:
        """Leave backward passes and those of forwards made meanwhile out, at next to no cost; or see them again."""
        self._calls.pause(is_paused)

    def hold(self, is_holding: bool) -> None:
        """Backward passes from here on are one small batch, or no longer.

        What an example adds in each of them is summed before the norm is taken. Layers' inputs are kept so long.
        """
        self._is_holding = is_holding

    def clear(self) -> None:
        """Forget everything captured."""
        self._open_calls: dict[tuple[int, str], list[tuple[LayerCall, Tensor]]] = {}
        self._sq_norms: dict[str, dict[Forward, Tensor]] = {}
        self._held: dict[tuple[str, Forward], list[Contribution]] = {}
        self._stands_for: dict[Forward, Forward] = {}
        self._checks.clear()
        self._to_drop: dict[str, tuple[Remedy, str]] = {}
        self._has_backward = False
        self._has_calls = False
        self._fault: str | None = None

    def take(self) -> tuple[Tensor, int] | None:
        """Σ |s_i|² of each covered parameter over the examples since the last call, and how many they were.

        s_i is example i's contribution to `p.grad`, as autograd computed it: for a mean over b examples g_i / b. Then
        everything is forgotten. A parameter whose contributions do not add up to its gradient comes out as NaN; in the
        first backward passes it leaves `covered` instead, and the answer is None.

        Returns:
            [P] fp64 in the order of `covered`, and the number of examples, or of groups of examples; None where no
            backward was seen, or `is_incomplete`.
        """
        sq_norm_bP = self.per_example()
        return None if sq_norm_bP is None else (sq_norm_bP.sum(0), len(sq_norm_bP))

    def per_example(self) -> Tensor | None:
        """|s_i|² by example and covered parameter, [b, P] fp64; `take()` before its sum, forgetting like it.

        Examples come in the order of the forward passes, and within one in the order of its input.
        """
        try:
            self.reason = self._settle()
            self.is_incomplete = self.reason is not None
            if self.is_incomplete or not self._has_backward or not self._parameters:
                return None
            return self._collected()
        finally:
            self.clear()

    def remove(self) -> None:
        """Take every hook off."""
        self._calls.remove()
        if self._fused_norm_layers is not None:
            self._fused_norm_layers.remove()
        for handle in self._handles.values():
            handle.remove()
        self._handles.clear()
        self.clear()

    def _guarded(self, body: Callable[..., None]) -> Callable[..., None]:
        def hook(*args: Any) -> None:
            duty = self._duty()
            start = time.perf_counter() if duty is not None and duty.is_timing else None
            try:
                body(*args)
            except Exception as fault:  # noqa: BLE001  # the hook body: one of the client's three
                self._fault = "a fault of noisescale"
                self._on_fault(fault)
            if duty is not None and start is not None:
                duty.add_cost(time.perf_counter() - start)

        return hook

    def _see_reentrant(self) -> None:
        self._fault = "reentrant checkpointing: pass use_reentrant=False"

    def _follow(self, name: str) -> None:
        """Its uses are found in the graph of each forward from here on, not in the calls of layers."""
        self._followed.add(name)
        self._calls.follow(name, self._parameters[name])

    def _refuse_uses(self, name: str, reason: str) -> None:
        self._why_refused.setdefault(name, (Remedy.NOT_YET, reason))

    def _see_output_gradient(self, call: LayerCall, gradient: Tensor) -> None:
        if self._calls.is_paused:
            return
        self._has_calls = True
        task = current_graph_task()
        if call.request is not None:
            call.request.ask(self._num_groups(call))
        for name in call.layer.parameters.values():
            if name in self._parameters and (name in self._followed) == (call.layer.rule is FOLLOWED):
                self._open_calls.setdefault((task, name), []).append((call, gradient.detach()))

    def _leaf_hook(self, name: str) -> Callable[[Tensor], None]:
        def see(gradient: Tensor) -> None:
            if self._calls.is_paused:
                return
            if torch.is_grad_enabled() or torch.is_autocast_enabled(gradient.device.type):
                # A backward that makes a graph, or one inside autocast, would do the same to what is computed here.
                with torch.no_grad(), torch.autocast(gradient.device.type, enabled=False):
                    self._see_gradient(name, gradient.detach())
            else:
                self._see_gradient(name, gradient)

        return self._guarded(see)

    def _see_gradient(self, name: str, gradient: Tensor) -> None:
        self._has_backward = True
        calls = self._open_calls.pop((current_graph_task(), name), [])
        if not calls and name in self._followed and self._calls.is_single:
            self._fault = ONE_EXAMPLE
            return
        if not calls:
            self._to_drop[name] = self._why_refused.get(name, HIDDEN if name in self._used_inside else NOT_CALLED)
            return
        if not self._can_measure(name, [call for call, _ in calls]):
            return
        checksum = self._checks.begin(name)
        sq_norms = self._sq_norms.setdefault(name, {})
        of_backward = []
        for forward, of_forward in self._by_examples(calls).items():
            is_alone = len(of_forward) == 1 and not self._is_holding
            is_short = checksum is None and is_alone
            contributions = [
                self._contribution(name, call, grad_output, is_alone=is_alone, is_short=is_short)
                for call, grad_output in of_forward
            ]
            if (self._joins_forwards and forward.is_taken) or (forward in sq_norms and not self._is_holding):
                self._fault = TWICE
                return
            of_backward.append(sq_norms_of_sum(contributions, checksum, gradient.device))
            sq_norms[forward] = of_backward[-1]
            if self._is_holding:
                held = self._held.setdefault((name, forward), [])
                if held:
                    sq_norms[forward] = sq_norms_of_sum([*held, *contributions], None, gradient.device)
                held += contributions
        if checksum is not None:
            self._checks.end(name, checksum, gradient, torch.cat(of_backward))

    def _by_examples(self, calls: Sequence[tuple[LayerCall, Tensor]]) -> dict[Forward, list[tuple[LayerCall, Tensor]]]:
        """The calls by the forward whose examples theirs are added to."""
        found: dict[Forward, list[tuple[LayerCall, Tensor]]] = {}
        for call, grad_output in calls:
            assert call.forward is not None
            found.setdefault(self._first_of(call.forward), []).append((call, grad_output))
        return found

    def _first_of(self, forward: Forward) -> Forward:
        """The first forward of its size in this small batch; itself where each stands for itself."""
        if forward not in self._stands_for:
            others = self._stands_for.values() if self._joins_forwards else ()
            same = (other for other in others if other.num_examples == forward.num_examples)
            first = self._stands_for[forward] = next(same, forward)
            if self._is_holding and first is forward and len(self._stands_for) > 1:
                self._fault = UNEVEN
        return self._stands_for[forward]

    def _can_measure(self, name: str, calls: list[LayerCall]) -> bool:
        faults = [fault for call in calls if (fault := fault_of(call, self._examples_per_group)) is not None]
        if faults:
            self._fault = faults[0]
        elif not all(call.has_example_rows for call in calls):
            self._to_drop[name] = (Remedy.NOT_YET, NO_EXAMPLES)
        return not faults and name not in self._to_drop

    def _num_groups(self, call: LayerCall) -> int | None:
        """Groups of examples that a call's rows are known to be in, one after another."""
        num_examples = None if call.forward is None else call.forward.num_examples
        if num_examples is None or num_examples % self._examples_per_group or not call.has_example_rows:
            return None
        return num_examples // self._examples_per_group

    def _contribution(
        self, name: str, call: LayerCall, grad_output: Tensor, *, is_alone: bool, is_short: bool
    ) -> Contribution:
        """Of a call to a parameter; with `is_short` its norm comes from a kernel, where one knows it."""
        num_groups = self._num_groups(call)
        assert num_groups is not None
        own = next(own for own, known in call.layer.parameters.items() if known == name)
        if call.replay is not None:
            return call.replay.contribution(own, num_groups, is_alone=is_alone)
        assert call.layer.rule.contribute is not None
        of_output = grad_output if call.output_shape is None else grad_output.reshape(call.output_shape)
        contribution = call.layer.rule.contribute(call.layer.module, own, call.activation, of_output, num_groups)
        if not is_short or not isinstance(contribution, SummedTerms):
            return contribution
        known = call.known_sq_norms(current_graph_task(), of_output, num_groups, self._kernels)
        return replace(contribution, sq_norm_B=known.get(own))

    def _settle(self) -> str | None:
        """Why the backward passes so far give no answer; what can never be measured is dropped here."""
        if not self._has_backward:
            return None
        if any(module.training for module in self._batch_norms):
            return "batch normalisation in training mode couples the examples"
        if self._fault is not None:
            return self._fault
        if not self._has_calls:
            self._num_blind_backwards += 1
            if not self._checks.num_backwards and self._num_blind_backwards >= NUM_PROVING_BACKWARDS:
                for name in self.covered:
                    self._drop(name, Remedy.SWITCH_OFF, BLIND)
            return BLIND
        self._to_drop |= dict.fromkeys(self._checks.settle(), (Remedy.USE_INSTEAD, ELSEWHERE))
        for name, (kind, reason) in self._to_drop.items():
            if reason in LOOK_IN_GRAPH and name not in self._followed:
                self._why_refused[name] = kind, reason
                self._follow(name)
                self._checks.prove_anew()
            else:
                self._drop(name, kind, reason)
        if not self._to_drop:
            return None
        return FOUND_OUT if any(name not in self._parameters for name in self._to_drop) else FOLLOWED_NOW

    def _what_is_left_out(self) -> str | None:
        return message(
            self._left_out,
            num_covered=len(self._parameters),
            num_parameters=self._num_parameters,
            share=sum(p.numel() for p in self._parameters.values()) / max(1, self._num_elements),
        )

    def _drop(self, name: str, kind: Remedy, reason: str) -> None:
        self._left_out.append(LeftOut(name, kind, reason))
        self._handles.pop(name).remove()
        del self._parameters[name]
        self._checks.forget(name)

    def _collected(self) -> Tensor:
        """[b, P]; zero for the examples of a forward that did not use a parameter."""
        forwards = sorted({f for norms in self._sq_norms.values() for f in norms}, key=lambda f: f.number)
        device = next(iter(self._parameters.values())).device
        for forward in self._stands_for:
            forward.is_taken = True
        self.num_taken = sum(f.num_examples or 0 for f in self._stands_for) // self._examples_per_group
        columns = []
        for name in self._parameters:
            norms = self._sq_norms.get(name, {})
            parts = [norms[forward] if forward in norms else self._zeros(forward, device) for forward in forwards]
            column_b = torch.cat(parts) if len(parts) > 1 else parts[0]
            columns.append(column_b if column_b.device == device else column_b.to(device, non_blocking=True))
        return self._checks.with_nan(torch.stack(columns, dim=1), self._parameters)

    def _zeros(self, forward: Forward, device: torch.device) -> Tensor:
        assert forward.num_examples is not None
        return torch.zeros(forward.num_examples // self._examples_per_group, dtype=torch.float64, device=device)
