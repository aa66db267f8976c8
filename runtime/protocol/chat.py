"""What a person asks for and what one answer cost."""

import enum

from runtime.protocol.values import EnergyEstimate, Forecast, TierCount, Value


class Role(enum.StrEnum):
    """Who speaks in a conversation."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class ChatMessage(Value):
    """One turn of a conversation.

    ``thinking`` is what an assistant turn thought before its ``text``, without marks; the model's
    template decides whether it is told again. ``token_ids`` are the ids the engine generated for an
    assistant turn. They are sent back with later requests, so that the answer is never re-tokenised
    and its KV entries are found again.
    """

    role: Role
    text: str
    token_ids: list[int] = []
    thinking: str = ""


class SamplingSettings(Value):
    """How the next token is chosen; ``temperature`` 0 is greedy."""

    temperature: float = 0.7
    top_k: int = 0
    """0 keeps all."""
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    """None draws a new seed; the seed used is in the statistics."""
    stop: list[str] = []
    max_tokens: int = 0
    """0 goes on until the model ends or the context is full."""


class FinishReason(enum.StrEnum):
    """Why an answer ended by itself."""

    STOP = "stop"
    """The model ended its turn, or a stop string appeared."""
    LENGTH = "length"
    """``max_tokens`` was reached."""
    CONTEXT_FULL = "context_full"
    """No room is left in the context; nothing was cut."""


class GenerationStats(Value):
    """What one answer took; also sent for a cancelled one."""

    prompt_tokens: int
    reused_tokens: int
    """Prompt tokens whose KV entries were found from the turn before."""
    generated_tokens: int
    ttft_s: float
    prefill_s: float
    decode_s: float
    prompt_tokens_per_s: float
    """New prompt tokens by prefill seconds."""
    decode_tokens_per_s: float
    seed: int
    tiers: list[TierCount]
    drive_bytes_read: int
    seconds: dict[str, float]
    base_bytes: int
    budget_bytes: int
    peak_bytes: int
    """Largest resident size of the whole process during the answer; compare with base + budget."""
    context_tokens: int
    context_used_tokens: int
    energy: EnergyEstimate
    predicted: Forecast | None
    thinking_s: float = 0.0
    """From the first token to the last of the thinking; 0 if there was none."""
    decode_expert_misses: int = 0
    """Look-ups after the first token that no tier above the drive answered."""
    usual_tokens_per_s: float = 0.0
    """What earlier answers of this model reached under such a plan on this PC; 0 if unknown."""
    drive_bytes_written: int | None = None
    """By the background process during the answer; None where the system does not tell."""
