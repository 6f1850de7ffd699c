"""The prelude's layers against torch's own: the same text, run by Python on torch's Module and meta tensors."""

import builtins
import inspect
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weighbridge

torch = pytest.importorskip("torch")
nn = torch.nn
PRELUDE = Path(weighbridge.__file__).parent / "reading" / "prelude"
NATIVE = ("Module", "Parameter", "Buffer", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict")


class Prelude:
    """Runs a prelude file under the dotted name it stands for; what is not in the prelude is torch's own."""

    def __init__(self) -> None:
        self.loaded: dict[str, types.ModuleType] = {}
        self.real_import = builtins.__import__

    def load(self, name: str) -> types.ModuleType:
        if name in self.loaded:
            return self.loaded[name]
        module = self.loaded[name] = types.ModuleType(name)
        if name == "torch.nn":
            for native in NATIVE:
                setattr(module, native, getattr(nn, native))
        path = PRELUDE / f"{name.replace('.', '_')}.py"
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self.importer}
        if name == "torch.nn":
            module.__getattr__ = self.reexported
        else:
            exec(compile(path.read_text(), str(path), "exec"), module.__dict__)  # our own text
        return module

    def reexported(self, attribute: str) -> Any:
        text = (PRELUDE / "torch_nn.py").read_text()
        for block in text.split("from ")[1:]:
            source, names = block.split(" import ")
            if attribute in names.replace("(", " ").replace(")", " ").replace(",", " ").split():
                return getattr(self.load(source), attribute)
        raise AttributeError(attribute)

    def importer(self, name: str, globals_: Any = None, locals_: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if fromlist and (name == "torch.nn" or (PRELUDE / f"{name.replace('.', '_')}.py").exists()):
            return self.load(name)
        return self.real_import(name, globals_, locals_, fromlist, level)


OURS = Prelude()
EXPORTED = sorted(
    name
    for block in (PRELUDE / "torch_nn.py").read_text().split("from ")[1:]
    for name in block.split(" import ")[1].replace("(", " ").replace(")", " ").replace(",", " ").split()
)


def our(name: str) -> Any:
    return getattr(OURS.load("torch.nn"), name)


@pytest.mark.parametrize("name", EXPORTED)
def test_a_layer_takes_the_arguments_torch_takes_with_the_same_defaults(name: str) -> None:
    theirs = getattr(nn, name, None) or getattr(nn.modules.linear, name, None) or getattr(nn.modules.rnn, name, None)
    expected = inspect.signature(theirs)
    got = inspect.signature(our(name))
    if any(p.kind is p.VAR_POSITIONAL for p in [*got.parameters.values(), *expected.parameters.values()]):
        return

    def plain(signature: inspect.Signature) -> list[tuple[str, Any]]:
        return [(p.name, getattr(p.default, "__name__", p.default)) for p in signature.parameters.values()]

    assert plain(got) == plain(expected)


def test_every_layer_of_torch_nn_is_there_but_the_lazy_and_retired_ones() -> None:
    missing = (
        {n for n in dir(nn) if inspect.isclass(getattr(nn, n)) and issubclass(getattr(nn, n), nn.Module)} - set(EXPORTED) - set(NATIVE)
    )
    assert {n for n in missing if not n.startswith("Lazy")} <= {
        "Container",
        "FractionalMaxPool2d",
        "FractionalMaxPool3d",
        "DataParallel",
        "LinearCrossEntropyLoss",
    }


X = torch.float32
CASES: list[tuple[str, tuple[Any, ...], dict[str, Any], list[tuple[int, ...]]]] = [
    ("Linear", (4, 6), {}, [(2, 3, 4)]),
    ("Linear", (4, 6), {"bias": False, "dtype": torch.bfloat16}, []),
    ("Bilinear", (4, 5, 6), {}, [(2, 4), (2, 5)]),
    ("Identity", (3,), {"x": 2}, [(2, 3)]),
    ("Embedding", (10, 4, 0), {}, []),
    ("EmbeddingBag", (10, 4), {}, []),
    ("LayerNorm", (4,), {}, [(2, 4)]),
    ("LayerNorm", ((3, 4),), {"bias": False}, [(2, 3, 4)]),
    ("RMSNorm", (4,), {}, [(2, 4)]),
    ("GroupNorm", (2, 4), {}, [(2, 4, 3)]),
    ("BatchNorm1d", (4,), {}, [(2, 4, 3)]),
    ("BatchNorm2d", (4,), {"affine": False}, [(2, 4, 3, 3)]),
    ("BatchNorm2d", (4,), {"track_running_stats": False}, [(2, 4, 3, 3)]),
    ("SyncBatchNorm", (4,), {}, []),
    ("InstanceNorm2d", (4,), {"affine": True}, [(2, 4, 3, 3)]),
    ("Dropout", (0.1,), {}, [(2, 4)]),
    ("GLU", (), {}, [(2, 4)]),
    ("PReLU", (4,), {}, [(2, 4)]),
    ("Softmax", (-1,), {}, [(2, 4)]),
    ("Softplus", (), {}, [(2, 4)]),
    ("Hardtanh", (0, 6), {}, [(2, 4)]),
    ("Conv1d", (4, 6, 3), {"padding": "same"}, [(2, 4, 8)]),
    ("Conv1d", (4, 6, 3), {"padding": 1, "padding_mode": "reflect"}, [(2, 4, 8)]),
    ("Conv2d", (4, 6, 3), {"stride": 2, "groups": 2}, [(2, 4, 8, 8)]),
    ("Conv3d", (4, 6, (1, 2, 3)), {"bias": False}, [(2, 4, 3, 8, 8)]),
    ("ConvTranspose1d", (4, 6, 3, 2), {"output_padding": 1, "groups": 2}, [(2, 4, 8)]),
    ("ConvTranspose2d", (4, 6, 3), {}, [(2, 4, 8, 8)]),
    ("MaxPool2d", (2,), {}, [(2, 4, 8, 8)]),
    ("AvgPool1d", (2,), {}, [(2, 4, 8)]),
    ("AvgPool2d", (3, 2, 1), {}, [(2, 4, 8, 8)]),
    ("AdaptiveAvgPool2d", ((1, None),), {}, [(2, 4, 8, 8)]),
    ("AdaptiveMaxPool1d", (2,), {}, [(2, 4, 8)]),
    ("LPPool2d", (2, 3), {}, [(2, 4, 8, 8)]),
    ("Flatten", (1,), {}, [(2, 4, 8)]),
    ("Unflatten", (1, (2, 2)), {}, [(2, 4)]),
    ("Upsample", (), {"scale_factor": 2, "mode": "bilinear"}, [(2, 4, 8, 8)]),
    ("PixelShuffle", (2,), {}, [(2, 4, 3, 3)]),
    ("PixelUnshuffle", (2,), {}, [(2, 4, 4, 4)]),
    ("ChannelShuffle", (2,), {}, []),
    ("Unfold", (3,), {}, [(2, 4, 8, 8)]),
    ("Fold", ((8, 8), 3), {}, [(2, 36, 36)]),
    ("ZeroPad2d", (1,), {}, [(2, 4, 3, 3)]),
    ("ReflectionPad1d", ((1, 2),), {}, [(2, 4, 5)]),
    ("CircularPad2d", (1,), {}, [(2, 4, 5, 5)]),
    ("CosineSimilarity", (), {}, [(2, 4), (2, 4)]),
    ("PairwiseDistance", (), {}, [(2, 4), (2, 4)]),
    ("MultiheadAttention", (8, 2), {}, [(3, 2, 8), (5, 2, 8), (5, 2, 8)]),
    ("MultiheadAttention", (8, 2), {"kdim": 4, "vdim": 6, "batch_first": True}, [(2, 3, 8), (2, 5, 4), (2, 5, 6)]),
    ("MultiheadAttention", (8, 2), {"add_bias_kv": True, "add_zero_attn": True, "bias": False}, [(3, 2, 8), (5, 2, 8), (5, 2, 8)]),
    ("TransformerEncoderLayer", (8, 2, 16), {}, [(3, 2, 8)]),
    ("TransformerDecoderLayer", (8, 2, 16), {"norm_first": True, "batch_first": True}, [(2, 3, 8), (2, 5, 8)]),
    ("Transformer", (8, 2, 2, 3, 16), {"bias": False}, [(3, 2, 8), (4, 2, 8)]),
    ("LSTM", (4, 6, 2), {"bidirectional": True, "proj_size": 3}, [(5, 2, 4)]),
    ("LSTM", (4, 6), {"batch_first": True, "bias": False}, [(2, 5, 4)]),
    ("GRU", (4, 6, 2), {"bidirectional": True}, [(5, 2, 4)]),
    ("RNN", (4, 6), {"nonlinearity": "relu"}, [(5, 2, 4)]),
    ("LSTMCell", (4, 6), {}, [(2, 4)]),
    ("GRUCell", (4, 6), {"bias": False}, [(2, 4)]),
    ("RNNCell", (4, 6), {}, [(4,)]),
    ("AdaptiveLogSoftmaxWithLoss", (16, 100, [10, 50]), {}, []),
    ("CrossEntropyLoss", (), {"ignore_index": 0}, []),
    ("MSELoss", (), {}, [(2, 4), (2, 4)]),
    ("BCEWithLogitsLoss", (), {}, [(2, 4), (2, 4)]),
    ("TripletMarginLoss", (), {}, [(2, 4), (2, 4), (2, 4)]),
    ("CosineEmbeddingLoss", (), {"margin": 0.5}, []),
]


def described(module: Any) -> list[tuple[str, tuple[int, ...], Any]]:
    tensors = [*module.named_parameters(), *module.named_buffers()]
    return [(name, tuple(tensor.shape), tensor.dtype) for name, tensor in tensors]


def shapes(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.stride()
    return [shapes(v) for v in value] if isinstance(value, tuple | list) else value


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize(("name", "args", "kwargs", "inputs"), CASES, ids=lambda v: str(v) if isinstance(v, str) else "")
def test_a_layer_has_torchs_parameters_in_torchs_order_and_gives_torchs_shapes(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], inputs: list[tuple[int, ...]]
) -> None:
    with torch.device("meta"):
        theirs, ours = getattr(nn, name)(*args, **kwargs), our(name)(*args, **kwargs)
        assert described(ours) == described(theirs)
        assert list(ours.state_dict()) == list(theirs.state_dict())
        assert [n for n, _ in ours.named_modules()] == [n for n, _ in theirs.named_modules()]
        if inputs:
            tensors = [torch.empty(shape) for shape in inputs]
            assert shapes(ours(*tensors)) == shapes(theirs(*tensors))


NORMS: list[tuple[str, Callable[[Any], Any]]] = [
    ("torch.nn.utils", lambda m: m.weight_norm),
    ("torch.nn.utils", lambda m: m.spectral_norm),
    ("torch.nn.utils.parametrizations", lambda m: m.weight_norm),
    ("torch.nn.utils.parametrizations", lambda m: m.spectral_norm),
]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("layer", ["Conv1d", "ConvTranspose1d"])
@pytest.mark.parametrize("norm", range(len(NORMS)))
def test_weight_and_spectral_norm_rename_parameters_as_torch_does(norm: int, layer: str) -> None:
    module, pick = NORMS[norm]
    real = torch.nn.utils.parametrizations if module.endswith("ations") else torch.nn.utils
    theirs = pick(real)(getattr(nn, layer)(4, 6, 3))
    ours = pick(OURS.load(module))(our(layer)(4, 6, 3))
    assert described(ours) == described(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert shapes(ours(torch.zeros(2, 4, 9))) == shapes(theirs(torch.zeros(2, 4, 9)))


def test_packed_sequences_come_back_padded_to_the_longest() -> None:
    rnn = OURS.load("torch.nn.utils.rnn")
    theirs = torch.nn.utils.rnn
    x, lengths = torch.arange(24.0).reshape(3, 4, 2), torch.tensor([4, 2, 1])
    packed, expected = rnn.pack_padded_sequence(x, lengths, batch_first=True), theirs.pack_padded_sequence(x, lengths, batch_first=True)
    assert torch.equal(packed.data, expected.data)
    assert torch.equal(packed.batch_sizes, expected.batch_sizes)
    back, counts = rnn.pad_packed_sequence(packed, batch_first=True)
    again, expected_counts = theirs.pad_packed_sequence(expected, batch_first=True)
    assert torch.equal(back, again)
    assert torch.equal(counts, expected_counts)
