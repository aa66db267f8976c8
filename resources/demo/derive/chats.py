"""Chats that the dense model holds with itself, the training text of the router.

Every row of a batch is a small state machine: tokens are forced while its queue holds some and
sampled otherwise, so that rows stay equally long and need no padding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from tokenizers import Tokenizer

from resources.demo.derive.network import DenseNetwork, KvCache

SYSTEM = (
    "<|im_start|>system\n"
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
)
USER = "<|im_start|>user\n"
ASSISTANT = "<|im_start|>assistant\n"
END = "<|im_end|>"

Progress = Callable[[int], None]


@dataclass
class ChatRow:
    """One chat that is being written."""

    queue: list[int]
    temperature: float
    is_answering: bool
    ids: list[int] = field(default_factory=list)
    answer_mask: list[bool] = field(default_factory=list)
    is_finished: bool = False


def chat_prompt(question: str) -> str:
    """Return the templated text that asks one question, ready for the answer."""
    return f"{SYSTEM}{USER}{question}{END}\n{ASSISTANT}"


def asking_rows(
    tokenizer: Tokenizer, questions: Sequence[str], temperatures: Sequence[float]
) -> list[ChatRow]:
    """Return rows that begin with given questions."""
    return [
        ChatRow(tokenizer.encode(chat_prompt(question)).ids, temperature, is_answering=True)
        for question, temperature in zip(questions, temperatures, strict=True)
    ]


def inventing_rows(tokenizer: Tokenizer, temperatures: Sequence[float]) -> list[ChatRow]:
    """Return rows in which the model invents the user's question too."""
    ids = tokenizer.encode(SYSTEM + USER).ids
    return [ChatRow(list(ids), temperature, is_answering=False) for temperature in temperatures]


def write_chats(
    network: DenseNetwork,
    tokenizer: Tokenizer,
    rows: list[ChatRow],
    max_tokens: int,
    generator: torch.Generator,
    stop_after_answer: bool,
) -> None:
    """Fill the rows up to max_tokens each, or to the end of the first answer."""
    end_id = tokenizer.token_to_id(END)
    turn_ids = {
        True: tokenizer.encode("\n" + USER).ids,
        False: tokenizer.encode("\n" + ASSISTANT).ids,
    }
    cache = KvCache()
    for row in rows:
        row.ids.append(row.queue.pop(0))
        row.answer_mask.append(False)
    with torch.no_grad():
        for _ in range(max_tokens - 1):
            block = torch.tensor([[row.ids[-1]] for row in rows])
            logits = network.logits(network.hidden(block, cache=cache))[:, -1]
            for row, row_logits in zip(rows, logits, strict=True):
                if row.queue:
                    row.ids.append(row.queue.pop(0))
                    row.answer_mask.append(False)
                    continue
                chosen = _sampled(row_logits, row.temperature, generator)
                row.ids.append(chosen)
                row.answer_mask.append(row.is_answering and not row.is_finished)
                if chosen == end_id:
                    row.is_finished = row.is_finished or row.is_answering
                    row.queue = list(turn_ids[row.is_answering])
                    row.is_answering = not row.is_answering
            if stop_after_answer and all(row.is_finished for row in rows):
                break


def _sampled(logits: torch.Tensor, temperature: float, generator: torch.Generator) -> int:
    if temperature == 0.0:
        return int(logits.argmax())
    probabilities = torch.softmax(logits / temperature, dim=-1)
    return int(torch.multinomial(probabilities, 1, generator=generator))
