"""Adam as torch has it, all parameters in one native call where they are float32 on the CPU.

torch's own fused step is one call for each group of parameters, but spends microseconds on every tensor: for a narrow
network more than on the arithmetic. State and its names are torch's, so that a checkpoint of either is the other's.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ebnet.nn import native


@dataclass
class _Plan:
    """What is known of the parameters that have a gradient, until their state is another."""

    state: Any
    """The optimizer's whole state, which loading a checkpoint replaces."""
    parameters: list[Tensor]
    moments: list[tuple[dict[str, Tensor], Tensor, Tensor, Tensor]]
    """Of each parameter its state, and what that held when the addresses were taken."""
    groups: list[tuple[dict[str, Any], slice]]
    addresses: NDArray[np.int64]
    rates: NDArray[np.float64]
    served: bool

    def holds(self, state: Any, parameters: list[Tensor]) -> bool:
        return (
            self.state is state
            and len(parameters) == len(self.parameters)
            and all(a is b for a, b in zip(parameters, self.parameters, strict=True))
            and all(
                own["exp_avg"] is m and own["exp_avg_sq"] is v and own["step"] is t for own, m, v, t in self.moments
            )
        )


class Adam(torch.optim.Adam):
    """`torch.optim.Adam` with weight decay as an L2 term; groups of parameters may have rates of their own.

    Attributes:
        coupling: the share of the sum of all experts' gradients that each learns from beside its own.
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        learning_rate: float,
        weight_decay: float = 0.0,
        experts: Mapping[Tensor, int] | None = None,
    ) -> None:
        """`experts` counts those of the parameters that several have, one's weights behind the other's."""
        super().__init__(parameters, learning_rate, weight_decay=weight_decay, fused=True)
        self.coupling = 0.0
        self._experts = experts or {}
        self._plan: _Plan | None = None

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step of all parameters that have a gradient."""
        every = [parameter for group in self.param_groups for parameter in group["params"]]
        gradients = [parameter.grad for parameter in every]
        if any(gradient is None for gradient in gradients):
            every = [parameter for parameter in every if parameter.grad is not None]
            gradients = [parameter.grad for parameter in every]
        if self._plan is None or not self._plan.holds(self.state, every):
            self._plan = self._planned(every)
        plan = self._plan
        if closure is not None or not (plan.served and native.enabled() and all(map(Tensor.is_contiguous, gradients))):
            self._couple()
            return super().step(closure)
        plan.addresses[:, 0] = [parameter.data_ptr() for parameter in every]
        plan.addresses[:, 1] = [gradient.data_ptr() for gradient in gradients]
        for group, rows in plan.groups:
            plan.rates[rows] = group["lr"], group["weight_decay"], self.coupling
        (beta1, beta2), eps = self.defaults["betas"], self.defaults["eps"]
        native.kernels.adam(plan.addresses, plan.rates, beta1, beta2, eps, torch.get_num_threads())
        return None

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        if not set_to_none:
            return super().zero_grad(set_to_none)
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None
        return None

    def _couple(self) -> None:
        """What the native step does on the way: share the gradients among the experts."""
        for parameter, count in self._experts.items() if self.coupling else ():
            if parameter.grad is not None:
                of_experts = parameter.grad.unflatten(0, (count, -1))
                of_experts.add_(of_experts.sum(0, keepdim=True), alpha=self.coupling)

    def _planned(self, parameters: list[Tensor]) -> _Plan:
        moments, groups, first = [], [], 0
        for parameter in parameters:
            own = self.state[parameter]
            if not own:
                own["step"] = torch.zeros(())
                own["exp_avg"], own["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
            moments.append((own, own["exp_avg"], own["exp_avg_sq"], own["step"]))
        for group in self.param_groups:
            count = sum(parameter.grad is not None for parameter in group["params"])
            groups.append((group, slice(first, first + count)))
            first += count
        tensors = [*parameters, *(tensor for _, *own in moments for tensor in own)]
        served = bool(parameters) and native.serves(*tensors) and all(map(Tensor.is_contiguous, tensors))
        rows = [
            (0, 0, m.data_ptr(), v.data_ptr(), step.data_ptr(), parameter.numel(), self._experts.get(parameter, 1))
            for parameter, (_, m, v, step) in zip(parameters, moments, strict=True)
        ]
        addresses, rates = np.array(rows, np.int64).reshape(-1, 7), np.empty((len(rows), 3))
        return _Plan(self.state, parameters, moments, groups, addresses, rates, served)
