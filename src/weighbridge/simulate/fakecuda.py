"""Let a CPU-only torch build accept fake tensors on device "cuda", autograd included. Only ctypes, no compiler.

A build without CUDA misses three things that fake tensors need:

* a device guard: `torch._C._ensureCUDADeviceGuardSet` replaces an existing guard that sees no device, but here the slot is empty;
* an accelerator: the autograd engine asks the CUDA hooks whether there is one before it adds two gradients;
* kernels for operations that have both a CUDA and a decomposed implementation: without the former, torch decomposes them,
  which a GPU never does.
"""

import ctypes
from pathlib import Path
from typing import Any

import torch

CUDA = 1  # index of c10::DeviceType::CUDA in the guard registry
GUARD_REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"
CUDA_HOOKS = "_ZN2at6detail12getCUDAHooksEv"
VTABLE_SLOTS = 48
# Slots of at::CUDAHooksInterface's virtual table (g++ -fdump-lang-class), by torch release.
HOOK_SLOTS = {"2.13": {"isBuilt": 2, "hasPrimaryContext": 4}}
DECOMPOSED_WITHOUT_CUDA = ("silu_backward", "mish_backward", "_fused_rms_norm")

_alive: list[Any] = []  # what C++ points at must live as long as the process


def install(capability: tuple[int, int] = (8, 0)) -> None:
    """Patch this process once; a torch that has CUDA is left alone. Raises RuntimeError on a torch release whose layout is unknown."""
    if _alive or torch.cuda.is_available():
        return
    release = ".".join(torch.__version__.split(".")[:2])
    if release not in HOOK_SLOTS:
        raise RuntimeError(f"fake CUDA knows torch {', '.join(HOOK_SLOTS)}, not {torch.__version__}")
    libraries = Path(torch.__file__).parent / "lib"
    _set_device_guard(ctypes.CDLL(str(libraries / "libc10.so")))
    _set_accelerator(ctypes.CDLL(str(libraries / "libtorch_cpu.so")), HOOK_SLOTS[release])
    _register_kernels()
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    torch.cuda.get_device_capability = lambda device=None: capability  # noqa: ARG005  # torch's own signature
    torch.cuda.is_bf16_supported = lambda including_emulation=True: True  # noqa: ARG005  # torch's own signature


def _callback(answer: int) -> Any:
    function = ctypes.CFUNCTYPE(ctypes.c_long)(lambda: answer)
    _alive.append(function)
    return ctypes.cast(function, ctypes.c_void_p)


def _set_device_guard(c10: ctypes.CDLL) -> None:
    registry = (ctypes.c_void_p * 32).in_dll(c10, GUARD_REGISTRY)
    if registry[CUDA] is not None:
        return
    table = (ctypes.c_void_p * 64)(*([_callback(0).value] * 64))
    placeholder = (ctypes.c_void_p * 4)(ctypes.addressof(table))
    _alive.extend([table, placeholder])
    registry[CUDA] = ctypes.addressof(placeholder)
    torch._C._ensureCUDADeviceGuardSet()  # noqa: SLF001  # the only door
    if registry[CUDA] == ctypes.addressof(placeholder):
        raise RuntimeError("torch did not replace the placeholder device guard")


def _set_accelerator(torch_cpu: ctypes.CDLL, slots: dict[str, int]) -> None:
    getter = torch_cpu[CUDA_HOOKS]
    getter.restype = ctypes.c_void_p
    hooks = ctypes.cast(getter(), ctypes.POINTER(ctypes.c_void_p))
    old = ctypes.cast(hooks[0], ctypes.POINTER(ctypes.c_void_p))
    header = 2  # offset-to-top and type information stand before the first slot
    table = (ctypes.c_void_p * (VTABLE_SLOTS + header))(*(old[i] for i in range(-header, VTABLE_SLOTS)))
    table[slots["isBuilt"] + header] = _callback(1)
    table[slots["hasPrimaryContext"] + header] = _callback(0)
    _alive.append(table)
    hooks[0] = ctypes.addressof(table) + header * ctypes.sizeof(ctypes.c_void_p)


def _never(*_args: Any, **_kwargs: Any) -> None:
    raise RuntimeError("a placeholder kernel was called: no fake mode was active")


def _register_kernels() -> None:
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]  # torch has no annotation here
    _alive.append(library)
    for name in DECOMPOSED_WITHOUT_CUDA:
        if not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "CUDA"):  # noqa: SLF001  # the only door
            library.impl(name, _never, "CUDA")  # type: ignore[no-untyped-call]  # torch has no annotation here
