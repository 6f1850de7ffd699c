"""Calling modules in a forward pass: the path for the record, hooks, output shapes, and gradient checkpointing."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weighbridge.base.errors import CannotTell, WeighError
from weighbridge.phantom import Tensor, current
from weighbridge.phantom.checkpoint import checkpoint
from weighbridge.reading.glue.folding import Folding, NotAlike
from weighbridge.reading.glue.module_instance import ModuleInstance, walk
from weighbridge.reading.python import Machine, Namespace, Native

if TYPE_CHECKING:
    from weighbridge.reading.glue.runtime import Runtime

HOOKS = "hooks"
OWN_HOOK = -1
"""The number of the hook that adapters put on input embeddings."""
CHECKPOINT_OPTIONS = frozenset({"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop"})


class ModuleCalls:
    """How modules of one reading are called. `outputs` keeps the first output shape and the FLOPs of each module while `watching`."""

    def __init__(self, runtime: "Runtime") -> None:
        self.runtime = runtime
        self.watching = False
        self.folding: Folding | None = None
        """Set while alike blocks are to be played once."""
        self.outputs: dict[str, tuple[tuple[int, ...], int]] = {}
        runtime.modules.call = self.call
        namespace = runtime.modules.module.namespace
        namespace["register_forward_hook"] = Native(self._register, "register_forward_hook", lazy=True)
        checkpoints = runtime.torch.modules["torch.utils.checkpoint"]
        checkpoints.entries["checkpoint"] = self.checkpoint_function()

    def call(self, machine: Machine, module: ModuleInstance, args: list[Any], kwargs: dict[str, Any] | None) -> Any:
        """module(*args, **kwargs)."""
        if self.folding is not None and id(module) in self.folding.roles:
            return self.folding.call(module, args, kwargs, lambda: self._call(machine, module, args, kwargs))
        return self._call(machine, module, args, kwargs)

    def folded(self, folding: Folding, play: Callable[[], Any]) -> Any:
        """What `play` gives with alike blocks played once, or None where they turn out not to be alike."""
        self.folding = folding
        folding.reset()
        try:
            result = play()
            folding.check()
        except (NotAlike, WeighError):
            return None
        finally:
            self.folding = None
            folding.release()
        return result

    def _call(self, machine: Machine, module: ModuleInstance, args: list[Any], kwargs: dict[str, Any] | None) -> Any:
        session = current()
        forward = module.fields.get("forward")
        if forward is None:
            forward = module.cls.find("forward")
            args.insert(0, module)
        session.enter_module(module.path)
        before = session.flops
        try:
            if module.runtime is None:
                result = machine.call(forward, args, kwargs)
            else:
                result = self._with_hooks(machine, module, forward, args, kwargs)
            if self.watching and module.path not in self.outputs:
                self._watch(module, result, session.flops - before)
            return result
        finally:
            session.leave_module()

    def _with_hooks(self, machine: Machine, module: ModuleInstance, forward: Any, args: list[Any], kwargs: dict[str, Any] | None) -> Any:
        given = tuple(args[1:])
        result = machine.call(forward, args, kwargs)
        assert module.runtime is not None
        for hook in list(module.runtime.get(HOOKS, {}).values()):
            changed = machine.call(hook, [module, given, result])
            result = result if changed is None else changed
        return result

    def _watch(self, module: ModuleInstance, result: Any, flops: int) -> None:
        first = result[0] if isinstance(result, tuple | list) and result else result
        if isinstance(first, Tensor):
            self.outputs[module.path] = (first.shape, flops)
        else:
            self.outputs[module.path] = ((), flops)

    def _register(self, module: ModuleInstance, hook: Any, *_: Any, **__: Any) -> Namespace:
        if module.runtime is None:
            module.runtime = {}
        hooks = module.runtime.setdefault(HOOKS, {})
        number = len(hooks)
        hooks[number] = hook
        return Namespace("handle", {"remove": Native(lambda: hooks.pop(number, None) and None, "remove", lazy=True)})

    def checkpoint_function(self, *, reentrant: bool = False) -> Native:
        """torch.utils.checkpoint.checkpoint as interpreted code calls it."""

        def run(machine: Machine, args: list[Any], kwargs: dict[str, Any] | None) -> Any:
            function = args.pop(0)
            keywords = {name: value for name, value in (kwargs or {}).items() if name not in CHECKPOINT_OPTIONS}
            asked = bool((kwargs or {}).get("use_reentrant", reentrant))
            positional = list(args)
            args.clear()
            return checkpoint(function, positional, keywords, machine.call, use_reentrant=asked)

        return Native(run, "checkpoint", lazy=True, raw=True)

    def enable_checkpointing(self, root: ModuleInstance, *, inputs_need_grad: bool) -> None:
        """What gradient_checkpointing_enable does: every module that can checkpoint itself does."""
        machine = self.runtime.machine
        supports = machine.getattr(root, "supports_gradient_checkpointing", False)
        if supports is not True:
            raise CannotTell("gradient checkpointing", f"{root.cls.name} does not support it", hint="leave out --checkpointing")
        function = self.checkpoint_function()
        for _, module in walk(root, seen=set()):
            if machine.getattr(module, "gradient_checkpointing", MISSING_MARK) is not MISSING_MARK:
                module.fields["gradient_checkpointing"] = True
                module.fields["_gradient_checkpointing_func"] = function
        if inputs_need_grad:
            self._require_input_grads(root)

    def disable_checkpointing(self, root: ModuleInstance) -> None:
        """The opposite."""
        for _, module in walk(root, seen=set()):
            if module.fields.get("gradient_checkpointing") is True:
                module.fields["gradient_checkpointing"] = False
            if module.runtime is not None:
                module.runtime.get(HOOKS, {}).pop(OWN_HOOK, None)

    def _require_input_grads(self, root: ModuleInstance) -> None:
        """enable_input_require_grads: the output of every part's input embeddings becomes a leaf that wants a gradient."""
        machine = self.runtime.machine

        def hook(_module: Any, _args: Any, output: Any) -> None:
            if isinstance(output, Tensor) and output.node is None and current().grad_enabled:
                output.requires_grad = True

        seen: set[int] = set()
        for _, module in walk(root, seen=set()):
            find = machine.getattr(module, "get_input_embeddings", None) if module.fields.get("config") is not None else None
            if find is None:
                continue
            try:
                embeddings = machine.call(find, [])
            except NotImplementedError:
                continue
            if isinstance(embeddings, ModuleInstance) and id(embeddings) not in seen:
                seen.add(id(embeddings))
                embeddings.runtime = embeddings.runtime or {}
                embeddings.runtime.setdefault(HOOKS, {})[OWN_HOOK] = Native(hook, "require_grads", lazy=True)


MISSING_MARK = object()
