"""The command that talks with a model: one question, or a conversation in the terminal."""

import argparse
import contextlib
import dataclasses
import sys
from typing import Any

import msgspec

from runtime.cli.client import Client, CommandFailedError
from runtime.cli.failure import EXIT_INTERRUPTED, print_json, tell_failure
from runtime.cli.loading import LoadedChoice, load_model, read_sampling
from runtime.cli.output import tell
from runtime.cli.screen import readable_text, size_text, write_streamed
from runtime.errors import LarderError
from runtime.protocol.chat import (
    ChatMessage,
    FinishReason,
    GenerationStats,
    Role,
    SamplingSettings,
)
from runtime.protocol.comparison import notes_of
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import (
    GenerationCancelled,
    GenerationFinished,
    StartGeneration,
    TokensGenerated,
)
from runtime.protocol.sentences import reason_sentence
from runtime.protocol.values import Tier

_HELP = "Type a message. /new begins again, /quit or Ctrl+D leaves, Ctrl+C stops an answer."

_WITHOUT_ANSWER = {
    FinishReason.STOP: "The model ended without an answer. Ask again, or in other words.",
    FinishReason.LENGTH: (
        "The limit was reached before the answer began. Raise --max-tokens and ask again."
    ),
}
"""What is said of an answer without words."""


@dataclasses.dataclass(slots=True)
class Answer:
    """An answer as far as it came; ``reason`` is None if it was stopped."""

    text: str = ""
    thinking: str = ""
    token_ids: list[int] = dataclasses.field(default_factory=list)
    reason: FinishReason | None = None
    stats: GenerationStats | None = None


def chat(client: Client, options: argparse.Namespace) -> int:
    """Load the model, then answer one prompt or hold a conversation."""
    prompt = _read_prompt(options)
    loaded = load_model(client, options)
    sampling = read_sampling(options, loaded.sampling)
    opening = opening_of(options)
    if prompt is None:
        _converse(client, loaded, opening, sampling)
        return 0
    conversation = [*opening, ChatMessage(role=Role.USER, text=readable_text(prompt))]
    answer = ask_model(client, conversation, sampling, is_shown=not options.json)
    if options.json:
        print_json(_answer_json(answer, loaded))
    else:
        print()
        _tell_stats(answer)
    return EXIT_INTERRUPTED if answer.reason is None else 0


def _read_prompt(options: argparse.Namespace) -> str | None:
    """Return the one question, of the input where ``--json`` asks for it; None to converse.

    Raises ``LarderError`` for a question without words.
    """
    prompt: str | None = options.prompt
    if prompt is None and options.json:
        prompt = sys.stdin.read()
    if prompt is not None and not prompt.strip():
        raise LarderError(
            ErrorCode.SETTING_INVALID, name="--prompt", found="empty", expected="a question"
        )
    return prompt


def opening_of(options: argparse.Namespace) -> list[ChatMessage]:
    """Return what the model is told before anybody asks."""
    if not options.system:
        return []
    return [ChatMessage(role=Role.SYSTEM, text=readable_text(options.system))]


def ask_model(
    client: Client, conversation: list[ChatMessage], sampling: SamplingSettings, *, is_shown: bool
) -> Answer:
    """Return the model's answer, written as it comes if ``is_shown``; Ctrl+C stops it."""
    command = StartGeneration(
        request_id=client.new_id(), conversation=conversation, sampling=sampling
    )
    answer = Answer()
    texts: list[str] = []
    thoughts: list[str] = []
    events = client.events(command)
    while answer.stats is None:
        try:
            for event in events:
                match event:
                    case TokensGenerated():
                        answer.token_ids += event.token_ids
                        texts.append(event.text)
                        if event.thinking:
                            if is_shown and not thoughts:
                                tell("[thinking]")
                            thoughts.append(event.thinking)
                        if is_shown:
                            write_streamed(event.text)
                    case GenerationFinished():
                        answer.reason, answer.stats = event.reason, event.stats
                    case GenerationCancelled():
                        answer.stats = event.stats
        except KeyboardInterrupt:
            client.cancel(command.request_id)
    answer.text, answer.thinking = "".join(texts), "".join(thoughts)
    return answer


def _converse(
    client: Client,
    loaded: LoadedChoice,
    opening: list[ChatMessage],
    sampling: SamplingSettings,
) -> None:
    """Hold a conversation until the person leaves."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - importing it gives the prompt a history and editing
    is_watched = sys.stdin.isatty()
    if is_watched:
        print(f"{loaded.model.name} is ready. {_HELP}")
    conversation = list(opening)
    while (text := _read_line("> " if is_watched else "")) is not None:
        match text.strip():
            case "":
                continue
            case "/quit" | "/exit":
                return
            case "/new":
                conversation = list(opening)
                continue
            case "/help" | "/?":
                print(_HELP)
                continue
        question = ChatMessage(role=Role.USER, text=readable_text(text))
        try:
            answer = ask_model(client, [*conversation, question], sampling, is_shown=True)
        except CommandFailedError as failed:
            tell_failure(failed.report)
            continue
        print()
        _tell_stats(answer)
        conversation += [
            question,
            ChatMessage(
                role=Role.ASSISTANT,
                text=answer.text,
                token_ids=answer.token_ids,
                thinking=answer.thinking,
            ),
        ]


def _read_line(prompt: str) -> str | None:
    """Return the next line, None at the end of the input; Ctrl+C begins the line again."""
    while True:
        try:
            return input(prompt)
        except EOFError:
            if prompt:
                print()
            return None
        except KeyboardInterrupt:
            print("\n(/quit or Ctrl+D leaves)")


def _tell_stats(answer: Answer) -> None:
    """Write what the answer took to the error stream, where a pipe does not see it."""
    stats = answer.stats
    if stats is None:
        return
    if not answer.text.strip() and answer.reason in _WITHOUT_ANSWER:
        tell(_WITHOUT_ANSWER[answer.reason])
    parts = [
        f"{stats.generated_tokens} tokens",
        f"{stats.decode_tokens_per_s:.1f} tokens/s",
        f"first after {stats.ttft_s:.2f} s",
    ]
    if stats.drive_bytes_read:
        parts.append(f"{size_text(stats.drive_bytes_read)} read from the drive")
    if stats.thinking_s:
        parts.append(f"thought for {stats.thinking_s:.0f} s")
    if answer.reason is None:
        parts.append("stopped")
    elif answer.reason is FinishReason.LENGTH:
        parts.append("cut at --max-tokens")
    elif answer.reason is FinishReason.CONTEXT_FULL:
        parts.append("the context is full; /new begins again")
    tell(f"[{' · '.join(parts)}]")
    for note in notes_of(stats):
        tell(f"[{reason_sentence(note)}]")


def _answer_json(answer: Answer, loaded: LoadedChoice) -> dict[str, Any]:
    """Return an answer with what it took, measured beside predicted."""
    stats = answer.stats
    assert stats is not None, "an answer ends with its statistics"
    tiers = {
        tier.value: {"hits": count.hits, "misses": count.misses, "bytes": count.bytes}
        for tier in Tier
        for count in stats.tiers
        if count.tier is tier
    }
    return {
        "text": answer.text,
        "thinking": answer.thinking,
        "token_ids": answer.token_ids,
        "finish_reason": "cancelled" if answer.reason is None else answer.reason.value,
        "prompt_tokens": stats.prompt_tokens,
        "reused_tokens": stats.reused_tokens,
        "generated_tokens": stats.generated_tokens,
        "prompt_tokens_per_s": stats.prompt_tokens_per_s,
        "decode_tokens_per_s": stats.decode_tokens_per_s,
        "ttft_s": stats.ttft_s,
        "tiers": tiers,
        "drive_bytes_read": stats.drive_bytes_read,
        "drive_bytes_written": stats.drive_bytes_written,
        "seconds": stats.seconds,
        "base_bytes": stats.base_bytes,
        "budget_bytes": stats.budget_bytes,
        "peak_bytes": stats.peak_bytes,
        "device": loaded.plan.device,
        "vram_bytes": loaded.plan.vram_bytes,
        "energy_j": stats.energy.total_j,
        "energy_sources": msgspec.to_builtins(stats.energy.parts),
        "predicted": msgspec.to_builtins(stats.predicted),
        "usual_tokens_per_s": stats.usual_tokens_per_s,
        "notes": [reason_sentence(note) for note in notes_of(stats)],
        "seed": stats.seed,
        "context_tokens": stats.context_tokens,
        "context_used_tokens": stats.context_used_tokens,
        "plan": loaded.plan.kind.value,
        "expert_format": loaded.model.expert_format.value,
        "kernels": loaded.model.kernels,
        "load_s": loaded.model.load_s,
    }
