"""torch.nn.modules.utils: numbers spread over dimensions."""


def _ntuple(n, name="parse"):
    def parse(x):
        return tuple(x) if isinstance(x, (list, tuple)) else (x,) * n

    return parse


_single = _ntuple(1)
_pair = _ntuple(2)
_triple = _ntuple(3)
_quadruple = _ntuple(4)


def _reverse_repeat_tuple(t, n):
    return tuple(x for x in reversed(t) for _ in range(n))
