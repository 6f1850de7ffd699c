"""torch.nn.utils.parametrize: a parameter computed from others. `parametrizations.<name>.originalN` hold what is trained."""

from torch.nn import Module, ModuleDict, Parameter


class _Cached:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return None


def cached():
    return _Cached()


class ParametrizationList(Module):
    """The functions of one parameter, numbered, and the tensors they start from."""

    def __init__(self, function, originals, single):
        super().__init__()
        self.ntensors = len(originals)
        self.is_tensor = single
        self.add_module("0", function)
        for i, tensor in enumerate(originals):
            name = "original" if single else "original" + str(i)
            self.register_parameter(name, tensor if isinstance(tensor, Parameter) else Parameter(tensor))

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return getattr(self, "0")

    def forward(self):
        function = getattr(self, "0")
        if self.is_tensor:
            return function(self.original)
        return function(*[getattr(self, "original" + str(i)) for i in range(self.ntensors)])


def is_parametrized(module, tensor_name=None):
    if not hasattr(module, "parametrizations"):
        return False
    return tensor_name is None or tensor_name in module.parametrizations


def _computed(tensor_name):
    return property(lambda self: self.parametrizations[tensor_name]())


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    tensor = getattr(module, tensor_name)
    originals = parametrization.right_inverse(tensor) if hasattr(parametrization, "right_inverse") else tensor
    single = not isinstance(originals, (list, tuple))
    if not hasattr(module, "parametrizations"):
        module.parametrizations = ModuleDict()
    delattr(module, tensor_name)
    module.parametrizations[tensor_name] = ParametrizationList(parametrization, [originals] if single else list(originals), single)
    old = type(module)
    module.__class__ = type("Parametrized" + old.__name__, (old,), {tensor_name: _computed(tensor_name)})
    return module


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    return module
