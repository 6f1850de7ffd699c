"""Price: offers, a user's own prices, run lengths and quotes by paper arithmetic."""

import json
from datetime import date
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.base.errors import BadInput, NotFound, UsageError, WeighError
from weighbridge.cards import custom_card, find_card
from weighbridge.price import Offer, cheapest, cheapest_offer, load_offers, quote, quotes, read_offers, steps_of_samples, steps_of_tokens
from weighbridge.speed import StepTime

DAY = date(2026, 11, 9)


def offer(usd: float, *, card: str = "h100-sxm", gpus: int = 1, spot: bool = False, provider: str = "Somewhere") -> Offer:
    return Offer(provider, card, gpus, spot, usd, DAY, "its price page")


def step(seconds: float) -> StepTime:
    return StepTime(seconds * 0.9, seconds, seconds * 1.2, "compute", 0.4)


def test_every_shipped_offer_is_dated_sourced_and_of_a_known_card():
    offers = load_offers()
    assert len(offers) >= 100
    assert all(each.source and date(2026, 1, 1) <= each.read_at <= date(2026, 12, 31) for each in offers)
    assert all(find_card(each.card).id == each.card for each in offers)
    assert all(0.02 <= each.usd_per_gpu_hour <= 15 for each in offers)
    assert len({each.provider for each in offers}) >= 12


@pytest.mark.parametrize(
    "name", ["t4", "a10g", "l4", "rtx-4090", "a100-40gb-sxm", "a100-80gb-sxm", "l40s", "h100-sxm", "h200", "b200", "mi300x"]
)
def test_the_common_cards_have_an_on_demand_offer(name):
    assert cheapest_offer(load_offers(), find_card(name)) is not None


def test_steps_are_the_ceiling_of_samples_over_batch_for_each_epoch():
    assert steps_of_samples(50_000, 10, 32) == 15_630  # 1562.5 -> 1563 steps an epoch
    assert steps_of_samples(1, 1, 32) == 1
    assert steps_of_samples(2**60 + 1, 1, 1) == 2**60 + 1
    assert steps_of_samples(1000, 0.5, 10) == 50
    assert steps_of_tokens(1_000_000, 4, 2048) == 123  # 8192 tokens a step


@pytest.mark.parametrize("wrong", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (-5, 1, 1), (5, float("inf"), 1)])
def test_a_run_has_a_positive_length(wrong):
    with pytest.raises(UsageError):
        steps_of_samples(*wrong)


def test_a_quote_is_hours_times_the_price():
    # 1,000 steps of 3.6 s are one hour at 2.50 dollars; the range follows the step's
    answer = quote(offer(2.5), find_card("h100"), step(3.6), 1000)
    assert (answer.hours, answer.usd) == (pytest.approx(1.0), pytest.approx(2.5))
    assert (answer.low_usd, answer.high_usd) == (pytest.approx(2.25), pytest.approx(3.0))
    assert (answer.price_read_at, answer.bound, answer.mfu) == (DAY, "compute", 0.4)
    assert "its price page" in answer.price_source


def test_whole_machines_are_paid():
    eight = offer(24.0, gpus=8)
    assert [eight.machines(gpus) for gpus in (1, 8, 9)] == [1, 1, 2]
    assert quote(eight, find_card("h100"), step(3600), 1, gpus=9).usd == pytest.approx(48.0)


def test_the_cheapest_offer_counts_whole_machines_and_leaves_spot_out_unless_asked():
    offers = [
        offer(24.0, gpus=8, provider="Big"),
        offer(4.0, provider="Small"),
        offer(1.0, spot=True, provider="Spot"),
        offer(0.1, card="t4"),
    ]
    h100 = find_card("h100")
    assert cheapest_offer(offers, h100).provider == "Small"
    assert cheapest_offer(offers, h100, gpus=8).provider == "Big"
    assert cheapest_offer(offers, h100, spot=True).provider == "Spot"
    assert cheapest_offer(offers, find_card("b200")) is None


def test_the_cheapest_total_may_be_on_the_dearer_card():
    slow = quote(offer(1.0, card="a100-80gb-sxm"), find_card("a100"), step(10), 3600)
    fast = quote(offer(2.0), find_card("h100"), step(4), 3600)
    assert cheapest([slow, fast]) == fast
    assert cheapest([]) is None


def test_quotes_hold_the_cheapest_offer_of_each_offered_card_in_order_of_total():
    offers = [offer(4.0), offer(3.0, provider="Cheaper"), offer(1.0, card="a100-80gb-sxm")]
    cards = [find_card("h100"), find_card("a100"), find_card("b200"), custom_card(2**34)]
    found = quotes(cards, offers, lambda card: step(1 if card.id == "h100-sxm" else 2), steps=3600)
    assert [(each.card.id, each.usd) for each in found] == [("a100-80gb-sxm", pytest.approx(2.0)), ("h100-sxm", pytest.approx(3.0))]


@settings(deadline=None)
@given(st.floats(0.01, 100), st.floats(0, 50), st.floats(0.001, 100), st.integers(1, 10**6), st.integers(0, 10**6))
def test_a_run_never_gets_cheaper_by_a_dearer_hour_or_more_steps(usd, more_usd, seconds, steps, more_steps):
    card = find_card("h100")
    base = quote(offer(usd), card, step(seconds), steps)
    assert quote(offer(usd + more_usd), card, step(seconds), steps).usd >= base.usd
    assert quote(offer(usd), card, step(seconds), steps + more_steps).usd >= base.usd
    assert base.low_usd <= base.usd <= base.high_usd


ROW = {"provider": "Lab", "card": "H100", "gpus": 8, "usd_per_hour": 16.0, "read_at": "2026-11-30", "source": "invoice"}
CSV = "provider,card,gpus,spot,usd_per_hour,read_at,source\nLab,H100,8,false,16,2026-11-30,invoice\n"
TOML = 'provider = "Lab"\nread_at = 2026-11-30\nsource = "invoice"\n[[offers]]\ncard = "H100"\ngpus = 8\nusd_per_hour = 16\n'


@pytest.mark.parametrize(
    ("name", "text"),
    [("p.json", json.dumps([ROW])), ("p.json", json.dumps({"offers": [ROW]})), ("p.csv", CSV), ("p.csv", "\ufeff" + CSV), ("p.toml", TOML)],
)
def test_a_users_prices_are_read_from_json_csv_and_toml(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    assert read_offers(path) == (Offer("Lab", "h100-sxm", 8, False, 16.0, date(2026, 11, 30), "invoice"),)


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("p.json", "{", "is not JSON"),
        ("p.json", "{}", "no list of offers"),
        ("p.json", json.dumps({"offers": [], "currency": "EUR"}), "unknown currency"),
        ("p.json", "[]", "no offer"),
        ("p.json", "[" * 100_000, "is not JSON"),
        ("p.json", "[" + "1" * 5000 + "]", "is not JSON"),
        ("p.json", json.dumps([ROW | {"usd_per_hour": 10**400}]), "usd_per_hour"),
        ("p.json", json.dumps([ROW | {"gpus": 10**9}]), "at most 100,000"),
        ("p.toml", "a = " + "1" * 5000, "is not TOML"),
        ("p.json", "[3]", "an offer is a table"),
        ("p.json", json.dumps([ROW | {"gpus": 0}]), "offer 1: gpus must be above zero"),
        ("p.json", json.dumps([ROW | {"usd_per_hour": -1}]), "usd_per_hour"),
        ("p.json", json.dumps([ROW | {"usd_per_hour": "2 dollars"}]), "usd_per_hour"),
        ("p.json", json.dumps([ROW | {"card": "H101 extreme"}]), "no card is called"),
        ("p.json", json.dumps([ROW | {"vat": 1}]), "unknown vat"),
        ("p.json", json.dumps([{k: v for k, v in ROW.items() if k != "source"}]), "source is missing"),
        ("p.toml", "offers = 3", "no list of offers"),
        ("p.toml", "][", "is not TOML"),
        ("p.csv", CSV.replace(",8,", ",eight,"), "line 2"),
        ("p.csv", CSV.replace(",false,", ",maybe,"), "spot must be true or false"),
        ("p.csv", CSV + "a,b,c,d,e,f,g,h\n", "more cells"),
        ("p.csv", "provider,card\n", "no offer"),
        ("p.txt", "H100 2 dollars", "prices are read from"),
    ],
)
def test_a_bad_price_file_is_named_with_what_is_wrong(tmp_path, name, text, complaint):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    with pytest.raises(WeighError, match=complaint) as caught:
        read_offers(path)
    assert caught.value.hint


def test_a_missing_or_binary_price_file_is_our_error(tmp_path):
    with pytest.raises(NotFound):
        read_offers(tmp_path / "none.json")
    (tmp_path / "p.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput):
        read_offers(tmp_path / "p.json")


def script(name: str) -> ModuleType:
    loader = SourceFileLoader(name, str(Path(__file__).parents[1] / "scripts" / name))
    module = module_from_spec(spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def test_a_refresh_keeps_the_cheapest_region_of_each_machine_and_drops_cards_we_do_not_know(tmp_path):
    refresh = script("refresh_prices")

    def item(name: str, memory: float, price: float, region: str, count: int = 1) -> SimpleNamespace:
        return SimpleNamespace(
            provider="cloud", location=region, price=price, gpu_count=count, gpu_name=name, gpu_memory=memory, spot=False
        )

    items = [
        item("A100", 80, 3.0, "north"),
        item("A100", 80, 2.0, "south"),
        item("A100", 40, 1.0, "south"),
        item("A100", 80, 15.0, "south", count=8),
        item("Voodoo2", 12, 0.1, "south"),
        item("T4", 32, 0.1, "south"),  # not the memory of a T4
        item("T4", 16, 0.0, "south"),  # a price of nothing is no price
    ]
    offers = refresh.cheapest(items)
    assert [(each.card, each.gpus, each.usd_per_hour, each.region) for each in offers] == [
        ("a100-40gb-sxm", 1, 1.0, "south"),
        ("a100-80gb-sxm", 1, 2.0, "south"),
        ("a100-80gb-sxm", 8, 15.0, "south"),
    ]
    path = tmp_path / "gpuhunt.toml"
    path.write_text(refresh.render(offers), "utf-8")
    assert read_offers(path) == tuple(offers)
