"""The inputs of a forward call or a training step, from a config and a signature: what the page states and torch is held against."""

import math
from collections.abc import Callable, Iterator

from weighbridge.base.dtypes import FLOAT32, DType
from weighbridge.reading.input_facts import Argument, InputFacts, InputSpec, Literal, Sizes, constant, rows
from weighbridge.reading.input_rules import COMPANIONS, RULES, has_media, is_series, media_runs, ordinary_token, picture, text_length

__all__ = ["Argument", "InputFacts", "InputSpec", "Literal", "Sizes", "candidate_inputs", "default_inputs"]

Inputs = dict[str, Argument]
Labels = Callable[[InputFacts, Sizes, Inputs], Inputs]

# Which modalities a candidate call feeds beside its main input, likeliest first.
MODALITIES = (frozenset({"image", "audio"}), frozenset({"image"}), frozenset({"audio"}), frozenset[str]())
MEDIA = ("pixel_values", "input_features", "input_values", "pixel_values_videos")


def default_inputs(facts: InputFacts, batch: int, seq_tokens: int, *, labels: bool, floating: DType = FLOAT32) -> Inputs:
    """The arguments of one call: `labels` adds what a loss needs, `floating` is the type of pixels and sounds."""
    return next(candidate_inputs(facts, batch, seq_tokens, labels=labels, floating=floating))


def candidate_inputs(
    facts: InputFacts, batch: int, seq_tokens: int, *, labels: bool = False, floating: DType = FLOAT32
) -> Iterator[Inputs]:
    """Likely calls, best first: every modality, then fewer, then the first parameter alone. No call comes twice."""
    seen: list[Inputs] = []
    for modalities in MODALITIES:
        sizes = Sizes(batch, seq_tokens, labels, floating, modalities)
        for names in _argument_names(facts, sizes):
            call = _build(facts, sizes, names)
            if call and call not in seen:
                seen.append(call)
                yield call
    for call in [varied for vary in VARIATIONS for first in seen for varied in vary(facts, first)]:
        if call not in seen:
            seen.append(call)
            yield call


def _without_cache(facts: InputFacts, call: Inputs) -> Iterator[Inputs]:
    if facts.takes("use_cache") and "use_cache" not in call:
        yield call | {"use_cache": Literal(False, "the default cache does not suit this model")}


def _channels_first(_facts: InputFacts, call: Inputs) -> Iterator[Inputs]:
    sound = call.get("input_features")
    if isinstance(sound, InputSpec) and len(sound.shape) == 3:
        batch, rows_, columns = sound.shape
        yield call | {"input_features": InputSpec((batch, columns, rows_), sound.dtype, why="a spectrogram, bins first")}


def _pairs(_facts: InputFacts, call: Inputs) -> Iterator[Inputs]:
    pixels = call.get("pixel_values")
    if isinstance(pixels, InputSpec) and len(pixels.shape) == 4:
        yield call | {"pixel_values": InputSpec((pixels.shape[0], 2, *pixels.shape[1:]), pixels.dtype, why="two pictures a sample")}


# Less likely forms of a call, tried after all others were refused.
VARIATIONS = (_without_cache, _channels_first, _pairs)


def _argument_names(facts: InputFacts, sizes: Sizes) -> Iterator[list[str]]:
    main = facts.main_input_name if facts.takes(facts.main_input_name) else next(iter(facts.parameters), "input_ids")
    together = [main, *facts.required]
    if main == "input_ids" or "input_ids" in facts.required:
        together += [
            name for name in MEDIA if facts.takes(name) and has_media(facts, sizes, "audio" if name.startswith("input") else "image")
        ]
        if "input_values" in together and "input_features" in together and "input_values" not in facts.required:
            together.remove("input_values")
        if "pixel_values" in together and "pixel_values_videos" in together and "pixel_values_videos" not in facts.required:
            together.remove("pixel_values_videos")
    yield together
    yield [main, *facts.required]
    if facts.takes("input_ids") and main != "input_ids":
        yield ["input_ids", *together]
        yield ["input_ids", *facts.required]


def _build(facts: InputFacts, sizes: Sizes, names: list[str]) -> Inputs:
    names = list(dict.fromkeys(name for name in names if name in RULES))
    names += [other for name in names for other in COMPANIONS.get(name, ()) if facts.takes(other) and other not in names]
    call = {name: made for name in names if (made := RULES[name](facts, sizes)) is not None}
    if sizes.labels:
        call |= _labels(facts, sizes, call)
    if facts.takes("decoder_input_ids") and "labels" not in call:
        call["decoder_input_ids"] = RULES["decoder_input_ids"](facts, sizes) or Literal(False)
    return call


def _labels(facts: InputFacts, sizes: Sizes, call: Inputs) -> Inputs:
    made: Inputs = {}
    for suffix, rule in LABELS:
        if facts.architecture.endswith(suffix) and facts.takes("labels"):
            made = rule(facts, sizes, call)
            break
    else:
        if facts.takes("return_loss"):
            made = {"return_loss": Literal(True, "a contrastive model's own loss")}
        elif facts.takes("start_positions", "end_positions"):
            made = {name: constant((sizes.batch,), 0, why="one answer a sample") for name in ("start_positions", "end_positions")}
    if facts.takes("use_cache"):
        made["use_cache"] = Literal(False, "a Trainer keeps no cache")
    return made


def _token_labels(facts: InputFacts, sizes: Sizes, call: Inputs) -> Inputs:
    """Every token of the text is a target; a picture's placeholders are not."""
    ids = call.get("input_ids")
    length = ids.shape[-1] if isinstance(ids, InputSpec) else text_length(facts, sizes)
    media = sum(count for _, count in media_runs(facts, sizes))
    spec = rows(sizes.batch, [(-100, media), (ordinary_token(facts), length - media)], why="every text token is a target")
    return {"labels": spec} | (
        {"token_type_ids": RULES["mm_token_type_ids"](facts, sizes) or spec} if media and facts.takes("token_type_ids") else {}
    )


def _sequence_labels(facts: InputFacts, sizes: Sizes, _call: Inputs) -> Inputs:
    limit = facts.number("max_target_positions", default=1 << 40) or 1 << 40
    ordinary = ordinary_token(facts)
    return {
        "labels": constant(
            (sizes.batch, min(sizes.seq_tokens, limit)), ordinary, why="targets as long as the input, within the decoder's positions"
        )
    }


def _generation_labels(facts: InputFacts, sizes: Sizes, call: Inputs) -> Inputs:
    return _sequence_labels(facts, sizes, call) if facts.takes("decoder_input_ids") else _token_labels(facts, sizes, call)


def _class_labels(facts: InputFacts, sizes: Sizes, call: Inputs) -> Inputs:
    made: Inputs = {"labels": constant((sizes.batch,), 0, why="one class a sample")}
    if "input_ids" in call and facts.takes("token_type_ids"):
        made["token_type_ids"] = RULES["token_type_ids"](facts, sizes) or made["labels"]
    if "input_ids" in call and facts.config.get("is_encoder_decoder"):  # such a head reads the state of each row's end token
        length, end = text_length(facts, sizes), facts.number("eos_token_id")
        made["input_ids"] = rows(sizes.batch, [(ordinary_token(facts), length - 1), (end, 1)], why="a sentence and its end token")
    return made


def _pair_labels(facts: InputFacts, sizes: Sizes, call: Inputs) -> Inputs:
    return _token_labels(facts, sizes, call) | (
        {"next_sentence_label": constant((sizes.batch,), 0)} if facts.takes("next_sentence_label") else {}
    )


def _pixel_labels(facts: InputFacts, sizes: Sizes, _call: Inputs) -> Inputs:
    _, height, width = picture(facts)
    return {"labels": constant((sizes.batch, height, width), 0, why="one class a pixel")}


def _speech_labels(_facts: InputFacts, sizes: Sizes, _call: Inputs) -> Inputs:
    return {"labels": constant((sizes.batch, 16), 5, why="sixteen letters a second")}


def _masked_patches(facts: InputFacts, sizes: Sizes, _call: Inputs) -> Inputs:
    _, height, width = picture(facts)
    edge = facts.number("patch_size", default=16)
    patches = math.prod((height // edge, width // edge))
    return {"bool_masked_pos": constant((sizes.batch, patches), 1, why="every patch is hidden")}


def _series_labels(facts: InputFacts, _sizes: Sizes, call: Inputs) -> Inputs:
    """Every step of the series is a target, and counts."""
    series = call.get("input_ids")
    if not isinstance(series, InputSpec) or not is_series(facts):
        return {}
    names = [name for name in ("labels", "loss_masks") if facts.takes(name)]
    return {name: InputSpec(series.shape, series.dtype, why="every step is a target") for name in names}


LABELS: tuple[tuple[str, Labels], ...] = (
    ("ForCausalLM", _token_labels),
    ("LMHeadModel", _token_labels),
    ("ForMaskedLM", _token_labels),
    ("ForTokenClassification", _token_labels),
    ("ForSpeechSeq2Seq", _sequence_labels),
    ("ForConditionalGeneration", _generation_labels),
    ("MTModel", _sequence_labels),
    ("ForSequenceClassification", _class_labels),
    ("ForImageClassification", _class_labels),
    ("ForVideoClassification", _class_labels),
    ("ForAudioClassification", _class_labels),
    ("ForPreTraining", _pair_labels),
    ("ForSemanticSegmentation", _pixel_labels),
    ("ForPrediction", _series_labels),
    ("ForCTC", _speech_labels),
    ("ForMaskedImageModeling", _masked_patches),
)
