"""Cards: the data sheets' numbers, strict loading, and names that find them."""

import dataclasses
import shutil
import time
from datetime import date

import pytest

from weighbridge import cards
from weighbridge.base.errors import BadInput, UsageError
from weighbridge.base.units import GIB
from weighbridge.cards import Card, custom_card, find_card, load_cards, load_generations, read_card

ALL = load_cards()
TERA = 10**12
ASKED = (
    "t4 p100 v100-16 v100-32 a10 a10g a30 a40 a100-40 a100-80 l4 l40 l40s a4000 a5000 a6000 rtx4000ada rtx5000ada "
    "rtx6000ada rtxpro6000 h100 h100nvl h100pcie h200 h20 gh200 b200 b300 gb200 gb300 rtx3060 rtx3070 rtx3080-10 "
    "rtx3080-12 rtx3090 rtx3090ti rtx4060ti-16 rtx4070 rtx4070tisuper rtx4080 rtx4090 rtx5070ti rtx5080 rtx5090 "
    "mi210 mi250x mi300x mi325x mi350x mi355x 7900xtx gaudi2 gaudi3 a770 max1550 m1max m1ultra m2max m2ultra m3max "
    "m3ultra m4max"
)

# id, capability, nvidia-smi's MiB where it prints them, dense bf16 TFLOP/s, GB/s: typed from the data sheets, not from our tables
SHEETS = [
    ("t4", (7, 5), 15_360, None, 320),
    ("v100-32gb-sxm2", (7, 0), 32_768, None, 900),
    ("a10", (8, 6), 23_028, 125, 600),
    ("a100-40gb-sxm", (8, 0), 40_960, 312, 1555),
    ("a100-80gb-sxm", (8, 0), 81_920, 312, 2039),
    ("a100-80gb-pcie", (8, 0), 81_920, 312, 1935),
    ("l4", (8, 9), 23_034, 121, 300),
    ("l40s", (8, 9), 46_068, 362, 864),
    ("rtx-a6000", (8, 6), 49_140, 155, 768),
    ("rtx-3090", (8, 6), 24_576, 71, 936),
    ("rtx-4090", (8, 9), 24_564, 165, 1008),
    ("rtx-5090", (12, 0), 32_607, 209, 1792),
    ("h100-sxm", (9, 0), 81_559, 989, 3350),
    ("h100-pcie", (9, 0), 81_559, 756, 2000),
    ("h200", (9, 0), 143_771, 989, 4800),
    ("b200", (10, 0), 183_359, 2250, 8000),
    ("mi300x", (0, 0), 196_592, 1307, 5300),
]


@pytest.mark.parametrize(("id", "capability", "mib", "bf16", "bandwidth"), SHEETS)
def test_a_card_says_what_its_data_sheet_says(id, capability, mib, bf16, bandwidth):
    card = find_card(id)
    assert card.capability == capability
    assert card.bandwidth_bytes_per_second == bandwidth * 10**9
    if bf16:
        assert card.peak_flops("bfloat16") == pytest.approx(bf16 * TERA, rel=0.01)
    # a process gets what nvidia-smi prints less the driver's own share, which is at most 5 %
    assert 0.94 * mib * 2**20 <= card.memory_bytes <= mib * 2**20


def test_the_cards_that_were_asked_for_are_there():
    asked = ASKED.split()
    assert len({find_card(name).id for name in asked}) == len(asked)
    assert len(ALL) >= 45


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100-80gb-sxm"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("Tesla T4", "t4"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("rtx 4090", "rtx-4090"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"),
        ("Tesla V100-SXM2-16GB", "v100-16gb-sxm2"),
        ("AMD Instinct MI300X OAM", "mi300x"),
        ("h100", "h100-sxm"),
        ("A100", "a100-80gb-sxm"),
    ],
)
def test_a_card_is_found_by_the_names_that_drivers_and_providers_use(text, id):
    assert find_card(text).id == id


def test_an_unknown_card_names_the_nearest_ones():
    with pytest.raises(UsageError, match="no card") as caught:
        find_card("rtx 4091")
    assert "rtx-4090" in caught.value.hint


@pytest.mark.parametrize("card", ALL, ids=lambda card: card.id)
def test_every_number_has_a_source_and_a_date_and_makes_sense(card: Card):
    assert {source.figure for source in card.sources} == {"memory", "bandwidth", "dense_flops", "link", "context"}
    assert all(source.title and date(2014, 1, 1) <= source.read_at <= date(2027, 1, 1) for source in card.sources)
    assert type(card.memory_bytes) is int
    # no card gives a process more than its label in GiB, or less than two thirds of it
    assert card.label_gb * GIB * 0.66 <= card.memory_bytes <= card.label_gb * GIB
    assert 100e9 <= card.bandwidth_bytes_per_second <= 10e12
    assert 0 <= card.context_bytes < GIB
    dense = dict(card.dense_flops)
    assert dense["fp32"] <= dense.get("fp16", dense["fp32"])
    assert all(dense[column] <= sparse <= 2.2 * dense[column] for column, sparse in card.sparse_flops if column in dense)


def test_workspaces_are_what_torchs_handle_pool_allocates():
    # CublasHandlePool.cpp: ":4096:2:16:8" kibibytes below sm90, 32 MiB on sm90 and sm100
    assert {card.cublas_workspace_bytes for card in ALL if card.vendor == "nvidia" and card.capability < (9, 0)} == {
        (4096 * 2 + 16 * 8) * 1024
    }
    assert {card.cublas_workspace_bytes for card in ALL if (9, 0) <= card.capability < (12, 0)} == {32 * 2**20}


def test_a_type_the_card_lacks_runs_at_the_next_wider_rate():
    assert find_card("t4").peak_flops("bfloat16") == 8.1 * TERA
    assert find_card("t4").peak_flops("float16") == 65 * TERA
    assert find_card("a100").peak_flops("float8_e4m3fn") == 312 * TERA
    assert find_card("a100").peak_flops("float32") == 19.5 * TERA


def test_a_card_by_its_memory_has_no_speed():
    card = custom_card(22 * GIB)
    assert (card.memory_bytes, card.has_known_speed) == (22 * GIB, False)
    with pytest.raises(UsageError):
        custom_card(0)


def test_a_card_is_frozen_and_hashable():
    card = find_card("h100")
    assert len({card, find_card("H100 SXM")}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        card.memory_bytes = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('name = "NVIDIA A10"', 'name = "NVIDIA A10"\ncolour = "green"', "unknown colour"),
        ("ecc = true", "ecc = 1", "ecc must be bool"),
        ("ecc = true", "ecc = true\nvram = 24", "unknown vram"),
        ("bytes = 23_", "bytes = 0.5\nwas = 23_", "bytes must be int"),
        ("bytes = 23_", "bytes = 93_", "more memory than its label"),
        ("label_gb = 24", "label_gb = 24\nestimate = true", "needs its reason"),
        ("bf16 = 125_", "bf16 = 525_", "dense bf16 is above sparse"),
        ("fp32 = 31_", "fp33 = 31_", "dense fp32"),
        ('id = "a10"', 'id = "a11"', "not the file's name"),
        ('generation = "ampere"', 'generation = "amperian"', "generations.toml"),
        ("read_at = 2021-03-01", 'read_at = "March"', "must be a date"),
        ('id = "a10"', "id = ", "is not TOML"),
    ],
)
def test_loading_is_strict(tmp_path, old, new, complaint):
    path = tmp_path / "a10.toml"
    shutil.copy(cards.TABLES / "cards" / "a10.toml", path)
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(BadInput, match=complaint):
        read_card(path, load_generations())


def test_loading_all_cards_is_quick():
    def once() -> float:
        load_cards.cache_clear()
        start = time.process_time()
        load_cards()
        return time.process_time() - start

    assert min(once() for _ in range(5)) < 0.1  # about 0.02 s alone on a laptop's core
