import itertools

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from ebnet.errors import ConfigError, NonFiniteError, ShapeError
from ebnet.nn import BinaryConv2d, ExpertBinaryConv2d, Precision, Ste, sample_gradients, set_precision
from ebnet.nn import expert_function as function
from tests.nn.naive import expert_conv as naive


def assert_equals_naive(layer: ExpertBinaryConv2d, x: Tensor) -> None:
    """Output and every gradient in float64."""
    x = x.requires_grad_()
    y = layer(x)
    dy = torch.randn_like(y)
    inputs = [x, *layer.parameters()]
    ours = torch.autograd.grad(y, inputs, dy)
    expected_y = naive(layer, x)
    expected = torch.autograd.grad(expected_y, inputs, dy)
    assert torch.allclose(y, expected_y, atol=1e-10)
    for name, mine, theirs in zip(["x", *dict(layer.named_parameters())], ours, expected, strict=True):
        assert torch.allclose(mine, theirs, atol=1e-9), f"gradient of {name}"


shapes = st.fixed_dictionaries(
    {
        "groups": st.sampled_from([1, 2, 3]),
        "cin": st.integers(1, 4),
        "cout": st.integers(1, 4),
        "kernel": st.sampled_from([1, 2, 3, 5]),
        "stride": st.integers(1, 3),
        "padding": st.integers(0, 2),
        "dilation": st.integers(1, 2),
        "height": st.integers(9, 12),
        "width": st.integers(9, 18),
        "batch": st.integers(1, 6),
        "experts": st.integers(2, 5),
        "scaling": st.booleans(),
        "gate": st.sampled_from(["softmax", "sigmoid"]),
        "temperature": st.sampled_from([0.02, 0.7, 25.0]),
        "precision": st.sampled_from(list(Precision)),
        "seed": st.integers(0, 2**31),
    }
)


@settings(max_examples=150)
@given(shapes)
def test_equals_the_naive_formulation(s: dict) -> None:
    torch.manual_seed(s["seed"])
    layer = ExpertBinaryConv2d(
        s["groups"] * s["cin"],
        s["groups"] * s["cout"],
        s["kernel"],
        s["stride"],
        s["padding"],
        s["dilation"],
        s["groups"],
        num_experts=s["experts"],
        gate=s["gate"],
        temperature=s["temperature"],
        scaling=s["scaling"],
        precision=Precision.REAL,
    ).double()
    layer.weight.data.normal_(std=0.8)  # some latent weights beyond the clip
    set_precision(layer, s["precision"])
    assert_equals_naive(layer, torch.randn(s["batch"], layer.in_channels, s["height"], s["width"]).double())


@pytest.mark.parametrize(("chunk", "kernel", "groups"), list(itertools.product([1, 50, 1 << 21], [1, 3], [1, 2])))
def test_the_torch_path_in_chunks_of_any_size(
    monkeypatch: pytest.MonkeyPatch, chunk: int, kernel: int, groups: int
) -> None:
    monkeypatch.setattr(sample_gradients, "CHUNK", chunk)
    torch.manual_seed(chunk)
    layer = ExpertBinaryConv2d(4, 6, kernel, 2, 1, 1, groups, num_experts=3, precision=Precision.BINARY).double()
    assert_equals_naive(layer, torch.randn(7, 4, 9, 8).double())


def test_gradcheck_of_the_real_valued_function() -> None:
    torch.manual_seed(0)
    layer = ExpertBinaryConv2d(2, 2, 3, padding=1, num_experts=2, precision=Precision.REAL).double()
    choice = F.one_hot(torch.tensor([0, 1, 1]), 2).double()
    x = torch.randn(3, 2, 4, 4, dtype=torch.float64, requires_grad=True)

    def run(x: Tensor, theta: Tensor) -> Tensor:
        return function.expert_convolution(x, theta, choice, layer.geometry, None)

    assert torch.autograd.gradcheck(run, (x, layer.expert_weights.detach().requires_grad_()))


def test_one_expert_is_a_binary_convolution() -> None:
    torch.manual_seed(0)
    expert = ExpertBinaryConv2d(4, 8, 3, padding=1, groups=2, num_experts=1, precision=Precision.BINARY)
    plain = BinaryConv2d(4, 8, 3, padding=1, groups=2, precision=Precision.BINARY)
    plain.load_state_dict(expert.state_dict())
    x = torch.randn(2, 4, 5, 5)
    assert expert.gate is None
    assert torch.equal(expert(x), plain(x))
    assert expert.last_experts is not None
    assert expert.last_experts.tolist() == [0, 0]


def test_replication_keeps_the_function_and_breaks_the_symmetry() -> None:
    torch.manual_seed(0)
    layer = ExpertBinaryConv2d(4, 6, 3, padding=1, num_experts=1).double()
    x = torch.randn(16, 4, 6, 6, dtype=torch.float64)
    before = layer(x)
    layer.replicate(4)
    assert layer.num_experts == 4
    assert torch.allclose(layer(x), before)
    assert layer.last_experts is not None
    assert len(set(layer.last_experts.tolist())) > 1, "a random gate spreads the samples"
    layer(x).square().sum().backward()
    assert layer.gate is not None
    assert layer.gate.linear.weight.grad is not None
    assert layer.gate.linear.weight.grad.abs().max() < 1e-10, "equal experts: the softmax gradient is exactly zero"
    with pytest.raises(ConfigError, match="4 experts already"):
        layer.replicate(8)


def test_becoming_binary_folds_the_weights_size_into_the_scale() -> None:
    layer = ExpertBinaryConv2d(2, 3, 1, num_experts=2, precision=Precision.BINARY_INPUT)
    with torch.no_grad():
        layer.weight.copy_(
            torch.tensor([[1.0, 3.0], [0.5, 0.5], [2.0, 0.0], [3.0, 1.0], [1.5, 0.5], [0.0, 0.0]])[..., None, None]
        )
        layer.scale.copy_(torch.tensor([1.0, 2.0, 4.0]))
    set_precision(layer, Precision.BINARY)
    assert layer.scale.tolist() == [2.0, 1.5, 2.0]  # means over both experts: 2, 0.75, 0.5
    set_precision(layer, Precision.BINARY)
    assert layer.scale.tolist() == [2.0, 1.5, 2.0], "only the change folds"


def test_an_expert_without_samples_gets_a_zero_gradient() -> None:
    layer = ExpertBinaryConv2d(3, 4, 3, num_experts=3)
    assert layer.gate is not None
    with torch.no_grad():
        layer.gate.linear.weight.zero_()
        layer.gate.linear.bias.copy_(torch.tensor([0.0, 5.0, 0.0]))
    layer(torch.randn(4, 3, 5, 5)).square().sum().backward()
    assert layer.last_experts is not None
    assert layer.last_experts.tolist() == [1] * 4
    assert layer.weight.grad is not None
    grads = layer.weight.grad.unflatten(0, (3, 4)).abs().sum((1, 2, 3, 4))
    assert grads[0] == 0
    assert grads[1] > 0
    assert grads[2] == 0


def test_an_empty_batch() -> None:
    layer = ExpertBinaryConv2d(3, 4, 3, num_experts=3)
    y = layer(torch.randn(0, 3, 5, 5))
    assert y.shape == (0, 4, 3, 3)
    y.sum().backward()


def test_autocast() -> None:
    torch.manual_seed(0)
    layer = ExpertBinaryConv2d(8, 8, 3, padding=1, num_experts=2)
    x = torch.randn(4, 8, 6, 6)
    exact = layer(x)
    with torch.autocast("cpu", torch.bfloat16):
        y = layer(x)
    assert y.dtype == torch.bfloat16
    y.float().square().sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.dtype == torch.float32
    assert torch.allclose(y.float(), exact, atol=0.1, rtol=0.05)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["native", "torch"])
def test_channels_last(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(ExpertBinaryConv2d(8, 8, 3, padding=1, num_experts=2)).to(dtype)
    x = torch.randn(4, 8, 6, 6, dtype=dtype)
    plain = model(x)
    plain.square().sum().backward()
    expected = model[0].weight.grad.clone()  # type: ignore[union-attr]
    model.zero_grad()
    model.to(memory_format=torch.channels_last)
    y = model(x.contiguous(memory_format=torch.channels_last))
    assert y.is_contiguous(memory_format=torch.channels_last)
    y.square().sum().backward()
    assert torch.allclose(y, plain, atol=1e-6)
    assert torch.allclose(model[0].weight.grad, expected, atol=1e-5)  # type: ignore[arg-type]


def test_torch_compile_breaks_the_graph_cleanly() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.BatchNorm2d(4), ExpertBinaryConv2d(4, 4, 3, num_experts=2), nn.PReLU(4)).eval()
    x = torch.randn(3, 4, 6, 6)
    compiled = torch.compile(model, backend="eager")
    assert torch.allclose(compiled(x), model(x))
    compiled(x).sum().backward()


def test_wrong_input() -> None:
    layer = ExpertBinaryConv2d(4, 4, 3, num_experts=2)
    with pytest.raises(ShapeError, match=r"expects \[batch, 4, height, width\], got a tensor \(2, 3, 5, 5\)"):
        layer(torch.zeros(2, 3, 5, 5))
    with pytest.raises(NonFiniteError):
        layer(torch.full((2, 4, 5, 5), float("nan")))
    with pytest.raises(ConfigError, match="groups must divide"):
        ExpertBinaryConv2d(4, 6, 3, groups=4)
    with pytest.raises(ConfigError, match="0 experts"):
        ExpertBinaryConv2d(4, 4, 3, num_experts=0)
    with pytest.raises(ConfigError, match="stride=0"):
        BinaryConv2d(4, 4, 3, stride=0)
    with pytest.raises(ConfigError, match="odd kernel"):
        BinaryConv2d(4, 4, 2, padding="same")
    with pytest.raises(ConfigError, match="precision='half'"):
        BinaryConv2d(4, 4, 3, precision="half")
    with pytest.raises(ValueError, match="soft"):
        BinaryConv2d(4, 4, 3, ste="soft")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["native", "torch"])
def test_the_temporaries_of_backward_do_not_grow_with_the_batch(dtype: torch.dtype) -> None:
    """No tensor of the backward pass besides the gradients themselves is larger than a chunk."""
    chunk = 1 << 12
    layer = ExpertBinaryConv2d(8, 8, 3, padding=1, num_experts=2).to(dtype)
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            nonlocal largest
            out = func(*args, **(kwargs or {}))
            for t in out if isinstance(out, tuple | list) else [out]:
                if (
                    isinstance(t, Tensor)
                    and t.shape != x.shape
                    and t.untyped_storage().data_ptr() not in given_storages
                ):
                    largest = max(largest, t.untyped_storage().nbytes() // t.element_size())
            return out

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample_gradients, "CHUNK", chunk)
        for batch in (16, 256):
            x = torch.randn(batch, 8, 4, 4, dtype=dtype, requires_grad=True)
            y = layer.convolve(x, x.detach().mean((2, 3)))
            dy = torch.ones_like(y)
            given_storages = {t.untyped_storage().data_ptr() for t in (x, dy)}
            with Watch():
                y.backward(dy)
            assert largest <= chunk


def test_polynomial_estimator_of_the_activations() -> None:
    layer = BinaryConv2d(1, 1, 1, precision=Precision.BINARY_INPUT, ste=Ste.POLYNOMIAL)
    with torch.no_grad():
        layer.weight.fill_(2.0)
    x = torch.tensor([[[[0.25, -0.5, 2.0]]]], requires_grad=True)
    layer(x).sum().backward()
    assert x.grad is not None
    assert x.grad.flatten().tolist() == [3.0, 2.0, 0.0]
