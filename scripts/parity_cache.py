"""`parity cache [PATTERN]`: what a model's own cache holds, beside arithmetic on the config and what servers printed.

PAPER: bytes a token and at 32,768 tokens, bf16, one sequence, worked out by hand from the published sizes. PRINTED: bytes a token that
serving engines' logs state or that follow from their printed pool and capacity. Fails on any difference of a byte against PAPER, or of
half a percent against PRINTED, whose GiB are rounded to two places.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from weighbridge import sources
from weighbridge.jobs.estimate import Estimate, estimate
from weighbridge.jobs.job import Job
from weighbridge.model import Model
from weighbridge.reading.reader import read

GIB: Final = 1 << 30
CONTEXT: Final = 32_768
ROUNDED: Final = 0.005

Config = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Paper:
    """One model, worked out by hand: `token_bytes` of the layers that still grow, `nbytes` at CONTEXT, and what was multiplied."""

    name: str
    token_bytes: int
    nbytes: int
    why: str
    made_from: Callable[[Config], Config] | None = None


@dataclass(frozen=True, slots=True)
class Printed:
    """One line of a server's log: its pool and the tokens it holds, over so many cards, in elements of `element_bytes`."""

    name: str
    pool_gib: float
    tokens: int
    cards: int
    source: str

    @property
    def token_bytes(self) -> float:
        """What one token took, of all cards."""
        return self.pool_gib * GIB / self.tokens * self.cards


def gpt_oss_20b(config: Config) -> Config:
    """The published smaller model beside gpt-oss-120b: 24 layers of 32 experts, all else alike."""
    return {**config, "num_hidden_layers": 24, "num_local_experts": 32, "layer_types": config["layer_types"][:24]}


def qwen35_35b_a3b(config: Config) -> Config:
    """The published smaller model beside Qwen3.5-397B-A17B: 40 layers, every fourth with attention."""
    text = dict(config["text_config"])
    text |= {"hidden_size": 2048, "num_hidden_layers": 40, "layer_types": text["layer_types"][:40], "num_attention_heads": 16}
    text |= {"num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512}
    text |= {"linear_num_value_heads": 32}
    return {**config, "text_config": text, "vision_config": {**config["vision_config"], "out_hidden_size": 2048}}


BF16, FP32 = 2, 4
KEPT_OF_128, KEPT_OF_1024 = 127, 1023
"""A sliding layer keeps the window less the token that is being read."""
STATE_35: Final = 32 * 128 * 128 * FP32
"""A linear layer's state: value heads x key size x value size; the rule is computed in float32 and its state kept so."""
CONVOLVED_35: Final = (2 * 16 * 128 + 32 * 128) * 4 * BF16
"""And the last four inputs of its convolution: queries and keys of 16 heads, values of 32, each 128 wide."""

PAPER: Final = (
    Paper("meta-llama/Meta-Llama-3.1-8B", 32 * 2 * 8 * 128 * 2, 32 * 2 * 8 * 128 * 2 * CONTEXT,
          "32 layers x keys and values x 8 heads x 128 x 2 bytes"),
    Paper("Qwen/Qwen3-30B-A3B", 48 * 2 * 4 * 128 * 2, 48 * 2 * 4 * 128 * 2 * CONTEXT,
          "48 layers x keys and values x 4 heads x 128 (not 2048 / 32) x 2 bytes"),
    Paper("deepseek-ai/DeepSeek-V3", 61 * 576 * 2, 61 * 576 * 2 * CONTEXT, "61 layers x (512 latent + 64 rotary) x 2 bytes"),
    Paper("openai/gpt-oss-20b", 12 * 2 * 8 * 64 * 2, 12 * 2 * 8 * 64 * 2 * (CONTEXT + KEPT_OF_128),
          "keys and values x 8 heads x 64 x 2 bytes: 12 layers of all tokens, 12 of the last 127", gpt_oss_20b),
    Paper("Qwen/Qwen3.5-35B-A3B", 10 * 2 * 2 * 256 * 2, 10 * 2 * 2 * 256 * 2 * CONTEXT + 30 * (STATE_35 + CONVOLVED_35),
          "10 attention layers x keys and values x 2 heads x 256 x 2 bytes; 30 linear layers x a fixed state", qwen35_35b_a3b),
    Paper("google/gemma-4-26B-A4B", 5 * 2 * 2 * 512 * 2, 5 * 2 * 2 * 512 * 2 * CONTEXT + 25 * 2 * 8 * 256 * 2 * KEPT_OF_1024,
          "5 layers x keys and values x 2 heads x 512 x 2 bytes; 25 layers x keys and values x 8 heads x 256 x 2 bytes of 1,023 tokens"),
    Paper("google/gemma-3-27b-it", 10 * 2 * 16 * 128 * 2, 2 * 16 * 128 * 2 * (10 * CONTEXT + 52 * KEPT_OF_1024),
          "keys and values x 16 heads x 128 x 2 bytes: 10 layers of all tokens, 52 of the last 1,023"),
)  # fmt: skip

BASE_OF: Final[Mapping[str, str]] = {"openai/gpt-oss-20b": "openai/gpt-oss-120b", "Qwen/Qwen3.5-35B-A3B": "Qwen/Qwen3.5-397B-A17B"}

PRINTED: Final = (
    Printed("Qwen/Qwen2-7B-Instruct", 5.01, 93_872, 1, "dennislee22/vLLM-benchmarking, vLLM start-up"),
    Printed("Qwen/Qwen2-7B-Instruct", 24.83, 464_848, 1, "dennislee22/vLLM-benchmarking, vLLM start-up"),
    Printed("Qwen/Qwen2-7B-Instruct", 12.02, 450_192, 2, "dennislee22/vLLM-benchmarking, vLLM start-up, two cards"),
    Printed("Qwen/Qwen2-7B-Instruct", 31.83, 1_192_160, 2, "dennislee22/vLLM-benchmarking, vLLM start-up, two cards"),
    Printed("Qwen/Qwen3-14B", 20.58, 269_712, 2, "natoscott/benchmarks, vLLM start-up, two cards"),
    Printed("Qwen/Qwen3-32B", 25.40, 208_080, 2, "natoscott/benchmarks, vLLM start-up of the AWQ weights, two cards"),
    Printed("Qwen/Qwen3-8B", 26.83, 390_704, 2, "natoscott/benchmarks, vLLM start-up, two cards"),
    Printed("Qwen/Qwen3-8B", 6.37, 46_368, 1, "LMCache/LMCache#3430, vLLM start-up"),
    Printed("Qwen/Qwen2.5-32B-Instruct", 7.71, 3_947 * 16, 2, "vllm-project/vllm#15815, blocks of 16, two cards"),
    Printed("Qwen/Qwen3-235B-A22B", 48_128 / GIB, 1, 4, "vllm-project/vllm#21348, bytes a token and card, four cards"),
    Printed("CohereForAI/c4ai-command-r-v01", 2560 / 1024, 2048, 1, "dranger003's model card, llama.cpp's buffer"),
    Printed("01-ai/Yi-34B", 480 / 1024, 2048, 1, "dranger003's model card of Yi-1.5-34B, llama.cpp's buffer"),
)


def model_of(paper: Paper) -> Model:
    """From the catalogue, or from the sizes of a larger sibling there."""
    evidence = sources.find(BASE_OF.get(paper.name, paper.name), offline=True)
    if paper.made_from is not None:
        evidence = replace(evidence, title=paper.name, config=paper.made_from(dict(evidence.config)), tensors=None)
    return read(evidence)


def growing(found: Estimate) -> int:
    """Bytes that the next token adds."""
    return sum(group.bytes_per_token for group in found.cache if group.window is None or group.window > found.seq_tokens)


def main(arguments: list[str]) -> int:
    """Both tables; 1 where a number is off."""
    parser = argparse.ArgumentParser(prog="parity cache", description=__doc__)
    parser.add_argument("pattern", nargs="?", default="")
    pattern = parser.parse_args(arguments).pattern.lower()
    off = 0
    for paper in PAPER:
        if pattern not in paper.name.lower():
            continue
        found = estimate(model_of(paper), Job(method="serve", context=CONTEXT))
        same = (found.cache_bytes, growing(found)) == (paper.nbytes, paper.token_bytes)
        off += not same
        read_as = f"{found.cache_bytes or 0:,} bytes, {growing(found):,} a token"
        expected = "" if same else f", on paper {paper.nbytes:,} and {paper.token_bytes:,}"
        print(f"{'same' if same else 'OFF '} {paper.name}: {(found.cache_bytes or 0) / GIB:.4f} GiB, {read_as}{expected} ({paper.why})")
    seen: dict[str, int] = {}
    for printed in PRINTED:
        if pattern not in printed.name.lower():
            continue
        if printed.name not in seen:
            seen[printed.name] = growing(estimate(read(sources.find(printed.name, offline=True)), Job(method="serve", context=512)))
        error = seen[printed.name] / printed.token_bytes - 1
        off += abs(error) > ROUNDED
        print(f"{error:+.2%} {printed.name}: {seen[printed.name]:,} bytes a token, printed {printed.token_bytes:,.0f} ({printed.source})")
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
