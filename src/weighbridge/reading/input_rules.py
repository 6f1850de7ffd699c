"""One rule for each parameter of a forward call: its shape, type and the values that matter, from the config alone.

A rule is chosen by the parameter's name, and within a rule by the keys that the config has: never by the model's name. Sizes
that a processor would choose (the pixels of a picture, the seconds of a sound) are named here once.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from weighbridge.base.dtypes import BOOL, FLOAT32, INT64
from weighbridge.reading.input_facts import (
    AUDIO_PARTS,
    TEXT_PARTS,
    VISION_PARTS,
    Argument,
    InputFacts,
    InputSpec,
    Literal,
    Sizes,
    constant,
    rows,
)

Rule = Callable[[InputFacts, Sizes], Argument | None]

PICTURE_PIXELS = 448  # an edge, where the processor and not the config decides the size
SOUND_SAMPLES = 16_000  # one second at 16 kHz
SOUND_FRAMES = 320  # of 10 ms, where the config does not fix the length
IMAGE_TOKEN_KEYS = ("image_token_id", "image_token_index")
AUDIO_TOKEN_KEYS = ("audio_token_id", "audio_token_index")
TEXT_AFTER_MEDIA = 16  # a sequence is made long enough for its media and this much text


def ordinary_token(facts: InputFacts) -> int:
    """The smallest id that is no special token of this config."""
    special: set[int] = set()
    for place in (facts.config, *(facts.config.get(part) for part in TEXT_PARTS)):
        values = (
            [value for key, value in place.items() if key.endswith(("_token_id", "_token_index"))] if isinstance(place, Mapping) else []
        )
        special.update(token for value in values for token in (value if isinstance(value, list | tuple) else [value]) if token is not None)
    return next(candidate for candidate in range(5, 100_000) if candidate not in special)


def picture(facts: InputFacts) -> tuple[int, int, int]:
    """(channels, height, width) of one picture."""
    size = facts.get("image_size", "input_size", "img_size", parts=VISION_PARTS, default=224)
    if isinstance(size, dict):
        size = [size.get("height", 224), size.get("width", 224)]
    height, width = (size[-2], size[-1]) if isinstance(size, list | tuple) and len(size) > 1 else (facts_number(size), facts_number(size))
    channels = facts.get("num_channels", "in_channels", "in_chans", parts=VISION_PARTS, default=3)
    return channels if isinstance(channels, int) else 3, int(height), int(width)


def facts_number(value: Any) -> int:
    """A whole number out of a number or a one-element list."""
    return int(value[0] if isinstance(value, list | tuple) else value)


def patch(facts: InputFacts) -> int:
    """The edge of a vision patch."""
    return facts.number("patch_size", parts=VISION_PARTS, default=16)


def grid(facts: InputFacts) -> tuple[int, int]:
    """Rows and columns of patches of one picture whose size is free: a square of PICTURE_PIXELS, whole merge windows."""
    merge = facts.number("spatial_merge_size", "merge_size", parts=VISION_PARTS, default=2)
    side = max(merge, PICTURE_PIXELS // patch(facts) // merge * merge)
    return side, side


def image_tokens(facts: InputFacts) -> int:
    """Placeholder tokens of one picture, by the key that announces the way it is shortened."""
    _, height, width = picture(facts)
    patches = (height // patch(facts)) * (width // patch(facts))
    for applies, count in TOKEN_COUNTS:
        if applies(facts):
            return count(facts, patches)
    return patches


def _has(*names: str) -> Callable[[InputFacts], bool]:
    return lambda facts: any(facts.config.get(name) is not None for name in names)


def _grid_tokens(facts: InputFacts, _patches: int) -> int:
    merge = facts.number("spatial_merge_size", "merge_size", parts=VISION_PARTS, default=2)
    side, other = grid(facts)
    return side * other // merge**2


def _tile_tokens(facts: InputFacts, patches: int) -> int:
    """A square picture cut into the smallest square of tiles: the whole picture, its tiles and one newline a row."""
    side = math.isqrt(patches)
    across = tiles(facts)
    return patches + (across * side) * (across * side + 1)


def _strategy_tokens(facts: InputFacts, patches: int) -> int:
    class_token = facts.get("model_type", parts=VISION_PARTS) == "clip_vision_model"
    return patches + (1 if class_token and facts.config.get("vision_feature_select_strategy") == "full" else 0)


TOKEN_COUNTS: tuple[tuple[Callable[[InputFacts], bool], Callable[[InputFacts, int], int]], ...] = (
    (lambda facts: facts.takes("image_grid_thw"), _grid_tokens),
    (_has("mm_tokens_per_image"), lambda facts, _: facts.number("mm_tokens_per_image")),
    (_has("num_query_tokens"), lambda facts, _: facts.number("num_query_tokens")),
    (_has("perceiver_config"), lambda facts, _: facts.number("resampler_n_latents", parts=("perceiver_config",), default=64)),
    (_has("image_grid_pinpoints"), _tile_tokens),
    (_has("downsample_ratio"), lambda facts, patches: round(patches * facts.config["downsample_ratio"] ** 2)),
    (_has("scale_factor"), lambda facts, patches: patches // facts.number("scale_factor") ** 2),
    (_has("pixel_shuffle_factor"), lambda facts, patches: patches // facts.number("pixel_shuffle_factor") ** 2),
    (_has("downsample_factor"), lambda facts, patches: patches // facts.number("downsample_factor") ** 2),
    (
        lambda facts: facts.takes("image_sizes") and "spatial_merge_size" in facts.config,
        lambda facts, patches: patches // facts.number("spatial_merge_size") ** 2,
    ),
    (_has("vision_feature_select_strategy"), _strategy_tokens),
)


def tiles(facts: InputFacts) -> int:
    """Tiles along an edge when a square picture of twice the tile is cut (LLaVA-NeXT's any-resolution grid)."""
    return 2 if facts.config.get("image_grid_pinpoints") else 1


def has_media(facts: InputFacts, sizes: Sizes, kind: str) -> bool:
    """Whether this call is fed pictures or sounds beside text."""
    names = {"image": ("pixel_values",), "audio": ("input_features", "input_values")}[kind]
    return kind in sizes.modalities and any(facts.takes(name) for name in names)


def media_runs(facts: InputFacts, sizes: Sizes) -> list[tuple[int, int]]:
    """(token id, count) of the placeholders that stand before the text."""
    runs = []
    if has_media(facts, sizes, "image") and (token := facts.get(*IMAGE_TOKEN_KEYS)) is not None:
        runs.append((token, image_tokens(facts)))
    if has_media(facts, sizes, "audio") and (token := facts.get(*AUDIO_TOKEN_KEYS)) is not None:
        runs.append((token, audio_tokens(facts)))
    return runs


def audio_tokens(facts: InputFacts) -> int:
    """Placeholder tokens of one sound: frames after the encoder's stride of two and the projector's pooling of two."""
    frames = sound_frames(facts)
    return ((frames - 1) // 2 + 1 - 2) // 2 + 1


def sound_frames(facts: InputFacts) -> int:
    """Spectrogram frames of one sound: what an encoder with fixed positions insists on, else SOUND_FRAMES."""
    positions = facts.number("max_source_positions", parts=AUDIO_PARTS)
    return (
        2 * positions
        if 0 < positions <= 1500
        else facts.number("max_length", default=SOUND_FRAMES)
        if facts.takes("input_values")
        else SOUND_FRAMES
    )


def mel_bins(facts: InputFacts) -> int:
    """Height of a spectrogram."""
    names = ("num_mel_bins", "feature_size", "input_feat_per_channel", "feature_projection_input_dim", "input_dim", "input_feat_size")
    return facts.number(*names, parts=AUDIO_PARTS, default=80)


def text_length(facts: InputFacts, sizes: Sizes) -> int:
    """Tokens of a sequence: as asked, at least its media and a little text. Whether a model has so many positions its own source says."""
    media = sum(count for _, count in media_runs(facts, sizes))
    return max(sizes.seq_tokens, media + TEXT_AFTER_MEDIA) if media else sizes.seq_tokens


def is_series(facts: InputFacts) -> bool:
    """Whether what is called input_ids are measured numbers: the config tells their count at each step, and no vocabulary."""
    return facts.get("vocab_size", parts=TEXT_PARTS) is None and facts.number("input_size") > 0


def _token_rows(facts: InputFacts, sizes: Sizes) -> InputSpec:
    if is_series(facts):
        return InputSpec((sizes.batch, sizes.seq_tokens, facts.number("input_size")), sizes.floating, why="numbers: no vocabulary")
    media, length = media_runs(facts, sizes), text_length(facts, sizes)
    text = (ordinary_token(facts), length - sum(count for _, count in media))
    return rows(sizes.batch, [*media, text], why="ordinary tokens" + (" after the media's placeholders" if media else ""))


def _token_kinds(facts: InputFacts, sizes: Sizes) -> InputSpec:
    media = sum(count for _, count in media_runs(facts, sizes))
    return rows(sizes.batch, [(1, media), (0, text_length(facts, sizes) - media)], why="1 marks a picture's tokens")


def _text_zeros(facts: InputFacts, sizes: Sizes) -> InputSpec:
    return constant((sizes.batch, text_length(facts, sizes)), 0, why="one segment")


def _decoder_ids(facts: InputFacts, sizes: Sizes) -> InputSpec:
    limit = facts.number("max_target_positions", parts=("decoder",), default=1 << 40) or 1 << 40
    length = min(sizes.seq_tokens, limit)
    channels = facts.number("num_channels", parts=("decoder_config",)) if "decoder_config" in facts.config else 0
    shape = (sizes.batch, length, channels) if channels else (sizes.batch, length)
    return constant(shape, ordinary_token(facts), why="as long as the encoder's input, within the decoder's positions")


def _pixels(facts: InputFacts, sizes: Sizes) -> InputSpec:
    channels, height, width = picture(facts)
    edge = patch(facts)
    if facts.takes("image_grid_thw") or facts.takes("grid_thw"):
        temporal = facts.number("temporal_patch_size", parts=VISION_PARTS, default=1)
        across, down = grid(facts)
        return InputSpec(
            (sizes.batch * across * down, channels * temporal * edge * edge),
            sizes.floating,
            why=f"a {PICTURE_PIXELS}-pixel square a sample",
        )
    if facts.takes("spatial_shapes"):
        count = facts.number("max_num_patches", "num_patches", parts=VISION_PARTS, default=256)
        return InputSpec((sizes.batch, count, channels * edge * edge), sizes.floating, why="as many patches as the model has positions")
    return InputSpec(
        (sizes.batch, *_picture_stack(facts), channels, height, width), sizes.floating, why="one picture of the config's size a sample"
    )


def _picture_stack(facts: InputFacts) -> tuple[int, ...]:
    """Dimensions between the batch and one picture: tiles, pictures or frames."""
    if facts.takes("aspect_ratio_ids"):
        return 1, facts.number("max_num_tiles", parts=VISION_PARTS, default=4)
    if facts.config.get("image_grid_pinpoints"):
        return (tiles(facts) ** 2 + 1,)
    if facts.takes("pixel_attention_mask") or facts.takes("image_attention_mask"):
        return (1,)
    frames = (
        facts.number("num_frames", parts=VISION_PARTS)
        if facts.main_input_name == "pixel_values" or facts.get("num_frames", parts=VISION_PARTS)
        else 0
    )
    return (frames,) if frames else ()


def _video(facts: InputFacts, sizes: Sizes) -> InputSpec:
    channels, height, width = picture(facts)
    edge = facts.number("crop_size", parts=VISION_PARTS)
    frames = facts.number("num_frames", "frames_per_clip", parts=VISION_PARTS, default=16)
    return InputSpec((sizes.batch, frames, channels, edge or height, edge or width), sizes.floating, why="one clip a sample")


def _grid_rows(facts: InputFacts, sizes: Sizes) -> InputSpec:
    return rows(sizes.batch, [(1, 1), *((edge, 1) for edge in grid(facts))], why="one frame, rows and columns of patches")


def _image_sizes(facts: InputFacts, sizes: Sizes) -> InputSpec | None:
    keys = ("image_grid_pinpoints", "spatial_merge_size")
    if not any(key in facts.config for key in keys) and facts.get("model_type", parts=VISION_PARTS[:1]) != "pixtral":
        return None  # every picture has the encoder's own size
    _, height, width = picture(facts)
    return rows(sizes.batch, [(height * tiles(facts), 1), (width * tiles(facts), 1)], why="the picture before it was cut")


def _spatial_shapes(facts: InputFacts, sizes: Sizes) -> InputSpec:
    side = math.isqrt(facts.number("max_num_patches", "num_patches", parts=VISION_PARTS, default=256))
    return rows(sizes.batch, [(side, 1), (side, 1)], why="a square of patches")


def _pixel_attention_mask(facts: InputFacts, sizes: Sizes) -> InputSpec:
    if facts.takes("spatial_shapes"):
        count = facts.number("max_num_patches", "num_patches", parts=VISION_PARTS, default=256)
        return constant((sizes.batch, count), 1, why="no padding")
    _, height, width = picture(facts)
    return constant((sizes.batch, *_picture_stack(facts), height, width), 1, BOOL, "no padding")


def _features(facts: InputFacts, sizes: Sizes) -> InputSpec:
    frames, bins = sound_frames(facts), mel_bins(facts)
    if facts.takes("is_longer"):
        return InputSpec((sizes.batch, 1, 1024, bins), sizes.floating, why="one spectrogram of ten seconds")
    fixed = 0 < facts.number("max_source_positions", parts=AUDIO_PARTS) <= 1500
    shape = (sizes.batch, bins, frames) if fixed else (sizes.batch, frames, bins)
    return InputSpec(shape, sizes.floating, why=f"{frames} frames of 10 ms")


def _samples(facts: InputFacts, sizes: Sizes) -> InputSpec:
    if facts.config.get("num_mel_bins") and facts.config.get("max_length"):  # a spectrogram under the name of a waveform
        return InputSpec(
            (sizes.batch, facts.number("max_length"), mel_bins(facts)), sizes.floating, why="a spectrogram of the config's length"
        )
    codec = any(facts.get(name) for name in ("audio_channels", "upsampling_ratios", "downsampling_ratios"))
    channels = (facts.number("audio_channels", default=1),) if codec else ()
    return InputSpec((sizes.batch, *channels, SOUND_SAMPLES), sizes.floating, why="one second at 16 kHz")


def _frame_mask(facts: InputFacts, sizes: Sizes) -> InputSpec:
    return constant((sizes.batch, sound_frames(facts)), 1, why="no padding")


def _past_length(facts: InputFacts) -> int:
    lags = facts.get("lags_sequence", default=None)
    return facts.number("context_length", "prediction_length", default=64) + (max(lags) if isinstance(lags, list) and lags else 0)


def _past_values(facts: InputFacts, sizes: Sizes) -> InputSpec:
    channels = facts.number("num_input_channels", "input_size", default=1)
    inner = (channels,) if channels > 1 or facts.config.get("num_input_channels") else ()
    return InputSpec((sizes.batch, _past_length(facts), *inner), FLOAT32, why="one context window")


def _time_features(facts: InputFacts, sizes: Sizes) -> InputSpec:
    return InputSpec(
        (sizes.batch, _past_length(facts), facts.number("num_time_features") + facts.number("num_dynamic_real_features")), FLOAT32
    )


def _boxes(facts: InputFacts, sizes: Sizes) -> InputSpec:
    return constant((sizes.batch, text_length(facts, sizes), 4), 0, why="one box a token")


def _hidden(facts: InputFacts, sizes: Sizes) -> InputSpec:
    if facts.takes("grid_thw"):
        return _pixels(facts, sizes)  # a vision tower by itself calls its patches so
    width = facts.number("hidden_size", "d_model", default=768)
    return InputSpec((sizes.batch, sizes.seq_tokens, width), sizes.floating)


def _shaped(*shape: str | int, dtype: Any = INT64, value: float | None = None, config: tuple[str, ...] = ()) -> Rule:
    """A rule from words: "batch", "seq", a number, or the name of a config key."""

    def rule(facts: InputFacts, sizes: Sizes) -> Argument:
        words = {"batch": sizes.batch, "seq": sizes.seq_tokens}
        dims = tuple(word if isinstance(word, int) else words.get(word) or facts.number(word, *config, default=1) for word in shape)
        kind = sizes.floating if dtype is None else dtype
        return InputSpec(dims, kind) if value is None else constant(dims, value, kind)

    return rule


RULES: dict[str, Rule] = {
    "input_ids": _token_rows,
    "bbox": _boxes,
    "token_type_ids": _text_zeros,
    "mm_token_type_ids": _token_kinds,
    "moe_mm_token_type_ids": _token_kinds,
    "decoder_input_ids": _decoder_ids,
    "pixel_values": _pixels,
    "pixel_values_videos": _video,
    "image_grid_thw": _grid_rows,
    "grid_thw": _grid_rows,
    "image_sizes": _image_sizes,
    "spatial_shapes": _spatial_shapes,
    "pixel_attention_mask": _pixel_attention_mask,
    "input_features": _features,
    "input_values": _samples,
    "input_features_mask": _frame_mask,
    "feature_attention_mask": _frame_mask,
    "past_values": _past_values,
    "past_time_features": _time_features,
    "past_observed_mask": lambda facts, sizes: constant(_past_values(facts, sizes).shape, 1, FLOAT32),
    "hidden_states": _hidden,
    "inputs_embeds": _hidden,
    "decoder_inputs_embeds": _hidden,
    "aspect_ratio_ids": _shaped("batch", 1, value=1),
    "aspect_ratio_mask": _shaped("batch", 1, "max_num_tiles", value=1, config=("max_num_tiles",)),
    "visual_feats": _shaped("batch", 36, "visual_feat_dim", dtype=None),
    "visual_pos": _shaped("batch", 36, "visual_pos_dim", dtype=None),
    "image_attention_mask": lambda facts, sizes: constant(
        (sizes.batch, text_length(facts, sizes), 1), 1, why="every token sees the picture"
    ),
    "image_merge_sizes": _shaped("batch", value=1),
    "merge_sizes": _shaped("batch", value=1),
    "states": _shaped("batch", "seq", "state_dim", dtype=None),
    "actions": _shaped("batch", "seq", "act_dim", dtype=None),
    "rewards": _shaped("batch", "seq", 1, dtype=None),
    "returns_to_go": _shaped("batch", "seq", 1, dtype=None),
    "timesteps": _shaped("batch", "seq", value=1),
    "inputs": _shaped("batch", "seq", "d_model", dtype=None),
    "past_values_padding": lambda facts, sizes: constant(_past_values(facts, sizes).shape, 0, why="no padding"),
    "freq": _shaped("batch", 1, value=0),
    "task_inputs": _shaped("batch", 77, value=5),
    "query_embeds": _shaped("batch", 32, "hidden_size", dtype=None),
    "qformer_input_ids": _shaped("batch", 32, value=5),
    "use_cache": lambda _facts, _sizes: Literal(False, "a Trainer keeps no cache"),
    "return_loss": lambda _facts, _sizes: Literal(True, "a contrastive model's loss"),
}

# A parameter that goes along once the first one is fed, where forward has it.
COMPANIONS: dict[str, tuple[str, ...]] = {
    "input_ids": ("bbox", "visual_feats", "visual_pos"),
    "pixel_values": (
        "image_grid_thw",
        "grid_thw",
        "image_sizes",
        "spatial_shapes",
        "mm_token_type_ids",
        "moe_mm_token_type_ids",
        "aspect_ratio_ids",
        "aspect_ratio_mask",
        "image_attention_mask",
        "image_merge_sizes",
    ),
    "input_features": ("input_features_mask", "feature_attention_mask"),
    "past_values": ("past_time_features", "past_observed_mask"),
    "states": ("actions", "rewards", "returns_to_go", "timesteps"),
}
