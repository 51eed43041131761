import pytest
import torch

from ebnet.errors import ConfigError
from ebnet.nn import Gate


def make_gate(weight: list[list[float]], **settings: object) -> Gate:
    gate = Gate(len(weight[0]), len(weight), **settings).double()  # type: ignore[arg-type]
    with torch.no_grad():
        gate.linear.weight.copy_(torch.tensor(weight))
        gate.linear.bias.zero_()
    return gate


def test_one_hot_of_the_largest() -> None:
    gate = make_gate([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    choice = gate(torch.tensor([[2.0, 1.0], [0.0, 3.0], [-1.0, -2.0]], dtype=torch.float64))
    assert choice.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize("experts", [2, 4, 7, 33])
def test_ties_go_to_the_lowest_index(experts: int) -> None:
    gate = make_gate([[0.0]] * experts)
    choice = gate(torch.ones(5, 1, dtype=torch.float64))
    assert choice.sum(1).tolist() == [1] * 5
    assert choice.argmax(1).tolist() == [0] * 5
    gate.linear.bias.data[1:] = 1
    assert gate(torch.ones(5, 1, dtype=torch.float64)).argmax(1).tolist() == [1] * 5


@pytest.mark.parametrize("temperature", [0.02, 1.0, 5.0])
def test_backward_is_the_softmax_jacobian(temperature: float) -> None:
    gate = make_gate([[1.0, 0.5], [0.25, -1.0], [-1.0, 2.0]], temperature=temperature)
    mean = torch.randn(6, 2, dtype=torch.float64)
    grad = torch.randn(6, 3, dtype=torch.float64)
    ours = torch.autograd.grad(gate(mean), gate.linear.weight, grad)[0]
    soft = torch.softmax(gate.linear(mean) / temperature, 1)
    assert torch.allclose(ours, torch.autograd.grad(soft, gate.linear.weight, grad)[0], atol=1e-12)


def test_backward_of_the_sigmoid_variant() -> None:
    gate = make_gate([[1.0, 0.5], [0.25, -1.0]], gradient="sigmoid", temperature=2.0)
    mean, grad = torch.randn(6, 2, dtype=torch.float64), torch.randn(6, 2, dtype=torch.float64)
    ours = torch.autograd.grad(gate(mean), gate.linear.weight, grad)[0]
    reference = torch.autograd.grad(torch.sigmoid(gate.linear(mean) / 2), gate.linear.weight, grad)[0]
    assert torch.allclose(ours, reference, atol=1e-12)


def test_wrong_settings() -> None:
    with pytest.raises(ConfigError, match="gate='hard'"):
        Gate(4, 2, gradient="hard")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="temperature=0"):
        Gate(4, 2, temperature=0)
