"""Matrix products against torch: layouts, what is kept, and the folding of matmul."""

import pytest
from against_torch import T, check, phantom_layout
from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.base.dtypes import BFLOAT16
from weighbridge.phantom import OPERATIONS, Session, run_backward

torch = pytest.importorskip("torch")
F = torch.nn.functional

CASES = [
    ("linear", F.linear, [T(2, 3, 4), T(6, 4), T(6)], {}),
    ("linear", F.linear, [T(2, 3, 4), T(6, 4)], {}),
    ("linear", F.linear, [T(5, 4), T(6, 4), T(6)], {}),
    ("linear", F.linear, [T(4), T(6, 4), T(6)], {}),
    ("linear", F.linear, [T(4, 2, 3, order=(1, 2, 0)), T(6, 4), T(6)], {}),
    ("linear", F.linear, [T(2, 3, 4), T(6, 4, grad=False), T(6)], {}),
    ("linear", F.linear, [T(2, 3, 4, grad=False), T(6, 4)], {}),
    ("matmul", torch.matmul, [T(4), T(4)], {}),
    ("matmul", torch.matmul, [T(3, 4), T(4)], {}),
    ("matmul", torch.matmul, [T(4), T(4, 5)], {}),
    ("matmul", torch.matmul, [T(3, 4), T(4, 5)], {}),
    ("matmul", torch.matmul, [T(2, 3, 4), T(4, 5)], {}),
    ("matmul", torch.matmul, [T(2, 3, 4), T(4)], {}),
    ("matmul", torch.matmul, [T(3, 4), T(2, 4, 5)], {}),
    ("matmul", torch.matmul, [T(3, 4, grad=False), T(2, 4, 5)], {}),
    ("matmul", torch.matmul, [T(4), T(2, 4, 5)], {}),
    ("matmul", torch.matmul, [T(2, 1, 3, 4), T(5, 4, 6)], {}),
    ("matmul", torch.matmul, [T(2, 3, 4, 5), T(2, 3, 5, 6)], {}),
    ("matmul", torch.matmul, [T(2, 4, 3, order=(0, 2, 1)), T(2, 4, 5)], {}),
    ("matmul", torch.matmul, [T(3, 2, 4, order=(1, 0, 2)), T(4, 5, grad=False)], {}),
    ("bmm", torch.bmm, [T(2, 3, 4), T(2, 4, 5)], {}),
    ("baddbmm", torch.baddbmm, [T(2, 3, 5), T(2, 3, 4), T(2, 4, 5)], {}),
    ("addmm", torch.addmm, [T(5), T(3, 4), T(4, 5)], {}),
    ("addbmm", torch.addbmm, [T(3, 5), T(2, 3, 4), T(2, 4, 5)], {}),
    ("mv", torch.mv, [T(3, 4), T(4)], {}),
    ("outer", torch.outer, [T(3), T(4)], {}),
    ("tensordot", torch.tensordot, [T(2, 3, 4), T(3, 4, 5)], {}),
    ("kron", torch.kron, [T(2, 3), T(4, 5)], {}),
    ("bilinear", F.bilinear, [T(2, 4), T(2, 5), T(6, 4, 5), T(6)], {}),
    ("einsum", torch.einsum, ["bqd,bkd->bqk", T(2, 3, 4), T(2, 5, 4)], {}),
    ("einsum", torch.einsum, ["bhqd,bhkd->bhqk", T(2, 3, 4, 5), T(2, 3, 6, 5)], {}),
    ("einsum", torch.einsum, ["bij,jk->bik", T(2, 3, 4), T(4, 5)], {}),
    ("einsum", torch.einsum, ["i,j->ij", T(3), T(4)], {}),
    ("einsum", torch.einsum, ["bld,bl->bd", T(2, 3, 4), T(2, 3)], {}),
    ("einsum", torch.einsum, ["bqhd,bkhd->bhqk", T(2, 3, 4, 5), T(2, 6, 4, 5)], {}),
    ("einsum", torch.einsum, ["...ij,...jk->...ik", T(2, 3, 4), T(2, 4, 5)], {}),
    ("einsum", torch.einsum, ["ij->ji", T(3, 4)], {}),
    ("einsum", torch.einsum, ["ij,ij->", T(3, 4), T(3, 4)], {}),
    ("cdist", torch.cdist, [T(2, 3, 4), T(2, 5, 4)], {}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{[getattr(a, 'shape', a) for a in c[2]]}")
def test_a_product_has_torchs_layout_and_keeps_torchs_bytes(case) -> None:
    check(*case[:4], kept=case[0] not in {"cdist", "einsum"})


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_matmul_of_drawn_shapes_lies_as_torchs_does(data) -> None:
    inner, rows, columns = (data.draw(st.integers(1, 4)) for _ in range(3))
    batch = tuple(data.draw(st.lists(st.integers(1, 3), max_size=2)))
    left, right = (*batch, rows, inner), data.draw(st.sampled_from([(*batch, inner, columns), (inner, columns), (inner,)]))
    trained = data.draw(st.tuples(st.booleans(), st.booleans()))
    arguments = [T(*left, grad=trained[0]), T(*right, grad=trained[1])]
    if data.draw(st.booleans()):
        arguments.reverse()
        if arguments[0].shape[-1] != (arguments[1].shape[-2] if len(arguments[1].shape) > 1 else arguments[1].shape[0]):
            arguments.reverse()
    check("matmul", torch.matmul, arguments, {})


def test_a_linear_under_autocast_keeps_bfloat16_copies_of_input_and_weight() -> None:
    with Session(autocast=BFLOAT16).activate():
        x, w = T(2, 3, 4).phantom(), T(6, 4).phantom()
        out = OPERATIONS["linear"](x, w)
        assert out.dtype is BFLOAT16
        kept = out.node.edges[0][0].saved if not out.node.saved else out.node.saved
        assert {t.dtype for t in kept} == {BFLOAT16}


def test_a_linears_flops_are_two_a_multiply_add_and_twice_that_backward() -> None:
    session = Session()
    with session.activate():
        x, w = T(8, 4).phantom(), T(6, 4).phantom()
        out = OPERATIONS["linear"](x, w)
        run_backward(OPERATIONS["sum"](out))
    total = sum(key[2] * count for key, count in session.costs.items() if key[0] == "matmul")
    assert total == 3 * 2 * 8 * 4 * 6


def test_a_product_of_shapes_that_do_not_fit_is_refused() -> None:
    with pytest.raises(RuntimeError):
        phantom_layout("linear", [T(2, 3), T(4, 5)], {})


@pytest.mark.parametrize("name", ["inv", "cholesky", "svd", "qr", "eigh", "slogdet", "det", "pinv"])
def test_a_factorisation_has_torchs_shapes(name: str) -> None:
    matrix = torch.eye(3).expand(2, 3, 3)
    options = {"full_matrices": False} if name == "svd" else {}
    expected = getattr(torch.linalg, name)(matrix, **options)
    found, _ = phantom_layout(f"linalg_{name}", [T(2, 3, 3)], {})
    results = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    assert [(shape, dtype) for shape, _, dtype in found] == [(tuple(r.shape), str(r.dtype)[6:]) for r in results]
