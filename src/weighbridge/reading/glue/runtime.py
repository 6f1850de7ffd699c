"""Everything one reading holds together: the machine, its library, torch's and transformers' stand-ins, and the phantom session."""

from typing import Any

from weighbridge.base.cache import Cache
from weighbridge.phantom import Session
from weighbridge.reading.auto_classes import AutoTables
from weighbridge.reading.glue import forward_torch, version_4
from weighbridge.reading.glue.auto_api import AutoApi
from weighbridge.reading.glue.config_classes import ConfigHooks
from weighbridge.reading.glue.copying import Copying
from weighbridge.reading.glue.forward_modules import ModuleCalls
from weighbridge.reading.glue.forward_transformers import ForwardTransformers
from weighbridge.reading.glue.library import Library, Parsed
from weighbridge.reading.glue.module_instance import ModuleInstance, walk
from weighbridge.reading.glue.modules import ModuleLibrary
from weighbridge.reading.glue.operations import Operations
from weighbridge.reading.glue.prelude_api import PreludeApi
from weighbridge.reading.glue.stand_ins import stand_ins
from weighbridge.reading.glue.tensors import Device, adapters
from weighbridge.reading.glue.torch_api import TorchApi
from weighbridge.reading.glue.transformers_api import TransformersHelpers
from weighbridge.reading.python import Class, Limits, Machine
from weighbridge.reading.source_set import SourceSet


class Runtime:
    """One reading. While `constructing`, what a tensor's values would decide is Unknown; afterwards it is refused."""

    torch: TorchApi

    def __init__(
        self,
        sources: SourceSet,
        tables: AutoTables,
        cache: Cache,
        parsed: Parsed,
        *,
        limits: Limits | None = None,
        custom: bool = False,
    ) -> None:
        self.constructing: bool = True
        self.custom = custom
        self.device: Device = Device("meta")
        self.kept: dict[Any, Any] = {}
        """What jobs keep with a model: its tensors as they were read, adapters made for it."""
        self.session = Session()
        self.session.grad_enabled = False
        self.machine = Machine(limits or Limits())
        self.library = Library(self.machine, sources, tables, cache, parsed=parsed)
        self.machine.resolve = self.library.resolve
        self.modules = ModuleLibrary(self.machine)
        self.machine.hides = self.may_hide
        self.configs = ConfigHooks(lambda: self.library.get("transformers.configuration_utils", "SubConfigSpec"), lenient=custom)
        self.auto = AutoApi(self.library)
        self.helpers = TransformersHelpers(self.library, self.configs.base, custom=custom)
        self.operations: Operations = Operations(self)
        self.torch = TorchApi(self)
        self.prelude = PreludeApi(self)
        self.copying = Copying(self)
        self.machine.copiers = self.copying.hooks()
        self._join()
        self.calls = ModuleCalls(self)
        self.forward = ForwardTransformers(self)
        forward_torch.install(self)
        if custom:
            version_4.install(self)

    def _join(self) -> None:
        """Tell the machine of our values, and the library of what stands in for what."""
        for kind, adapter in adapters(self).items():
            self.machine.add_foreign(kind, adapter)
        self.library.stand_ins.update(self.torch.modules)
        self.library.stand_ins.update(stand_ins(self))
        self.library.stand_ins["glue"] = self.prelude.namespace
        self.library.overlays += [self.helpers.overlay, self.auto.overlay, self.prelude.overlay]
        self.library.helpers.append(self.helpers.helper)

    def may_hide(self, value: object) -> bool:
        """Whether unknown code that is handed this could give back a module."""
        return isinstance(value, ModuleInstance) or (isinstance(value, Class) and value.subclass_of(self.modules.module))

    def finish(self, root: ModuleInstance) -> None:
        """The model stands: name its modules, and leave construction."""
        for path, module in walk(root, seen=set()):
            module.path = path
        if self.custom:
            version_4.follow_precision(root)
        self.constructing = False
        self.device = Device("cuda", 0)
