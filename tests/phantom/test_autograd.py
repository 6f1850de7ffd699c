"""The engine, autocast and checkpointing on whole networks against torch: every byte, in order, forward and backward."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402 - needs torch
from torch.utils.checkpoint import checkpoint as torch_checkpoint  # noqa: E402 - likewise
from torch_events import Given, in_phantoms, in_torch  # noqa: E402 - likewise

from weighbridge.base.dtypes import FLOAT32  # noqa: E402 - likewise
from weighbridge.phantom import OPERATIONS, Session, Tensor, checkpoint, run_backward  # noqa: E402 - likewise


class Torch:
    """torch's spellings of what the networks below use."""

    linear, softmax, silu, gelu, cross_entropy, layer_norm = F.linear, torch.softmax, F.silu, F.gelu, F.cross_entropy, F.layer_norm
    embedding, matmul, cat = F.embedding, torch.matmul, torch.cat

    @staticmethod
    def method(name: str, x: Any, *arguments: Any, **keywords: Any) -> Any:
        return getattr(x, name)(*arguments, **keywords)

    @staticmethod
    def item(x: Any, key: Any) -> Any:
        return x[key]

    @staticmethod
    def cast(x: Any, like: Any) -> Any:
        return x.to(like.dtype)

    @staticmethod
    def checkpointed(function: Any, x: Any, reentrant: bool) -> Any:
        return torch_checkpoint(function, x, use_reentrant=reentrant)


class Phantom:
    """The same of phantoms."""

    linear, softmax, silu, gelu = OPERATIONS["linear"], OPERATIONS["softmax"], OPERATIONS["silu"], OPERATIONS["gelu"]
    cross_entropy, layer_norm, embedding = OPERATIONS["cross_entropy"], OPERATIONS["layer_norm"], OPERATIONS["embedding"]
    matmul, cat = OPERATIONS["matmul"], OPERATIONS["cat"]

    @staticmethod
    def method(name: str, x: Any, *arguments: Any, **keywords: Any) -> Any:
        return OPERATIONS[name](x, *arguments, **keywords)

    @staticmethod
    def item(x: Any, key: Any) -> Any:
        return OPERATIONS["__getitem__"](x, key)

    @staticmethod
    def cast(x: Any, like: Any) -> Any:
        return OPERATIONS["to"](x, like)

    @staticmethod
    def checkpointed(function: Any, x: Any, reentrant: bool) -> Any:
        return checkpoint(function, [x], {}, lambda call, arguments, keywords: call(*arguments, **keywords), use_reentrant=reentrant)


def perceptron(of: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    hidden = of.gelu(of.linear(x, w1, b1))
    return of.method("sum", of.method("add", x, of.linear(hidden, w2, b2)))


def tied(of: Any, ids: Any, table: Any, weight: Any, bias: Any) -> Any:
    x = of.embedding(ids, table)
    x = of.method("add", x, of.linear(of.layer_norm(x, (64,), weight, bias), of.item(table, slice(0, 64))))
    logits = of.method("float", of.linear(x, table))
    return of.cross_entropy(of.method("view", logits, -1, 128), of.method("view", ids, -1))


def attention(of: Any, x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
    q, k, v = (of.method("transpose", of.method("view", of.linear(x, w), 2, 16, 4, 16), 1, 2) for w in (wq, wk, wv))
    weights = of.softmax(of.method("mul", of.matmul(q, of.method("transpose", k, 2, 3)), 0.25), -1)
    out = of.method("reshape", of.method("contiguous", of.method("transpose", of.matmul(weights, v), 1, 2)), 2, 16, 64)
    return of.method("sum", of.method("add", x, of.linear(out, wo)))


def normalized(of: Any, x: Any, weight: Any) -> Any:
    wide = of.method("float", x)
    variance = of.method("mean", of.method("pow", wide, 2), -1, keepdim=True)
    wide = of.method("mul", wide, of.method("rsqrt", of.method("add", variance, 1e-6)))
    return of.method("mul", weight, of.cast(wide, x))


def rotated(of: Any, x: Any) -> Any:
    low, high = of.item(x, (..., slice(0, 32))), of.item(x, (..., slice(32, None)))
    return of.cat([of.method("neg", high), low], -1)


def block(of: Any, weight: Any, gate: Any, up: Any, down: Any) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        hidden = normalized(of, x, weight)
        hidden = of.method("add", of.method("mul", hidden, 2.0), of.method("mul", rotated(of, hidden), 3.0))
        mixed = of.method("mul", of.silu(of.linear(hidden, gate)), of.linear(hidden, up))
        return of.method("add", x, of.linear(mixed, down))

    return run


def twice(of: Any, x: Any, *weights: Any) -> Any:
    run = block(of, *weights)
    return of.method("sum", run(run(x)))


def twice_checkpointed(of: Any, x: Any, *weights: Any) -> Any:
    run = block(of, *weights)
    x = of.method("mul", x, 1.0)
    return of.method("sum", of.checkpointed(run, of.checkpointed(run, x, False), False))


def twice_reentrant(of: Any, x: Any, *weights: Any) -> Any:
    run = block(of, *weights)
    x = of.method("mul", x, 1.0)
    return of.method("sum", of.checkpointed(run, of.checkpointed(run, x, True), True))


X = Given((2, 16, 64))
SQUARE = Given((64, 64))
BLOCK = (X, Given((64,)), Given((96, 64)), Given((96, 64)), Given((64, 96)))
NETWORKS = {
    perceptron: (X, Given((256, 64)), Given((256,)), Given((64, 256)), Given((64,))),
    tied: (Given((2, 16), "int64"), Given((128, 64)), Given((64,)), Given((64,))),
    attention: (X, SQUARE, SQUARE, SQUARE, SQUARE),
    twice: BLOCK,
    twice_checkpointed: BLOCK,
    twice_reentrant: BLOCK,
}


@pytest.mark.parametrize("autocast", [None, "bfloat16", "float16"])
@pytest.mark.parametrize("network", NETWORKS)
def test_a_network_allocates_and_frees_as_in_torch(network: Callable[..., Any], autocast: str | None) -> None:
    given = NETWORKS[network]
    ours = in_phantoms(lambda *tensors: network(Phantom, *tensors), given, autocast)
    assert ours.steps == in_torch(lambda *tensors: network(Torch, *tensors), given, autocast).steps


def test_a_network_in_bfloat16_allocates_and_frees_as_in_torch() -> None:
    given = [Given(g.shape, "bfloat16") for g in BLOCK]
    ours = in_phantoms(lambda *tensors: twice(Phantom, *tensors), given)
    assert ours.steps == in_torch(lambda *tensors: twice(Torch, *tensors), given).steps


def leaf(*shape: int) -> Tensor:
    made = Tensor(shape, FLOAT32)
    made.requires_grad = True
    return made


def test_gradients_of_a_second_pass_are_added_to_those_of_the_first() -> None:
    with Session().activate() as session:
        weight = leaf(8, 8)
        run_backward(OPERATIONS["sum"](OPERATIONS["mul"](weight, 2.0)))
        first = weight.grad
        session.recorder.events.clear()
        run_backward(OPERATIONS["sum"](OPERATIONS["mul"](weight, 2.0)))
        assert weight.grad is first
        assert sum(size for _, size, _ in session.recorder.events) == 0


def test_a_branch_without_a_gradient_does_not_hold_up_the_rest() -> None:
    """The part of an unbound tensor that nobody used, and a function that passes no gradient on, still let their inputs run."""
    from weighbridge.phantom.operations import record

    with Session().activate():
        weight = leaf(4, 4)
        doubled = OPERATIONS["mul"](weight, 2.0)
        silent = record("silent", Tensor((4, 4), FLOAT32), [doubled], [], lambda *_: [None])
        run_backward(OPERATIONS["sum"](OPERATIONS["add"](silent, doubled)))
        assert weight.grad is not None


def test_nothing_is_recorded_without_grad() -> None:
    with Session().activate() as session, session.without_grad():
        assert OPERATIONS["exp"](leaf(4)).node is None


def test_backward_of_a_tensor_without_a_graph_is_an_error() -> None:
    with Session().activate(), pytest.raises(RuntimeError, match="does not require grad"):
        run_backward(Tensor((), FLOAT32))


def test_what_a_session_saved_is_freed_once_backward_ran() -> None:
    with Session().activate() as session:
        weight = leaf(16, 16)
        out = OPERATIONS["sum"](OPERATIONS["exp"](OPERATIONS["sin"](weight)))
        run_backward(out)
        assert sum(size for _, size, _ in session.recorder.events) == 2 * weight.nbytes + out.nbytes
