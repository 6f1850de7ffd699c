"""The auto classes' tables, against the tables of the real package."""

from support.reading import torch_modules
from weighbridge.reading.auto_classes import AutoTables
from weighbridge.reading.source_set import TransformersSource


def test_the_literal_tables_equal_the_real_ones() -> None:
    torch_modules()
    from transformers.models.auto import configuration_auto, modeling_auto

    tables = AutoTables.read(TransformersSource.find())
    assert tables.configs == dict(configuration_auto.CONFIG_MAPPING_NAMES)
    for name, table in vars(modeling_auto).items():
        if name.startswith("MODEL_") and name.endswith("_NAMES"):
            real = {key: (value,) if isinstance(value, str) else tuple(value) for key, value in table.items()}
            assert tables.tables[name] == real, name
    assert tables.mappings["AutoModelForCausalLM"] == "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES"
    assert tables.folder("gpt-sw3") == configuration_auto.model_type_to_module_name("gpt-sw3")


def test_the_version_is_read_without_importing() -> None:
    _, transformers = torch_modules()
    assert TransformersSource.find().version == transformers.__version__
