r"""Where the words of each message lie in a rendered prompt.

Searching for the words would be fooled by a message that says ``user`` or repeats a control token
of the template. So the conversation is rendered a second time with private marks around the words;
the positions count only if that prompt, marks removed, equals the first one.

    first    <|im_start|>user\nHello<|im_end|>...
    second   <|im_start|>user\n(0(Hello)0)<|im_end|>...
"""

import dataclasses
import re
from collections.abc import Callable, Sequence

Render = Callable[[Sequence[str]], str]
"""Prompt text of the conversation with these words in place of its own."""


@dataclasses.dataclass(frozen=True, slots=True)
class Span:
    """Characters ``start`` to ``end`` of a prompt that one message brought in."""

    start: int
    end: int

    def covers(self, other: "Span") -> bool:
        """Whether all characters of another are in this one."""
        return self.start <= other.start and other.end <= self.end


@dataclasses.dataclass(frozen=True, slots=True)
class PlacedPrompt:
    """A prompt, and for each message where its words lie.

    None where the template changed, repeated or dropped them. Surrounding white space that the
    template cut off is outside of the span.
    """

    text: str
    spans: tuple[Span | None, ...]


def place_texts(render: Render, texts: Sequence[str], keeps_space: Sequence[bool]) -> PlacedPrompt:
    """Render a conversation and find its texts.

    ``keeps_space`` says for which messages the exact text is wanted, so that marks go outside of
    its white space even if the template cuts white space off other messages.
    """
    prompt = render(texts)
    marks = _Marks(texts)
    outside = [marks.around(index, text) for index, text in enumerate(texts)]
    inside = [marks.within(index, text) for index, text in enumerate(texts)]
    mixed = [
        outer if keeps else inner
        for outer, inner, keeps in zip(outside, inside, keeps_space, strict=True)
    ]
    for marked in (outside, mixed, inside):
        plain, spans = marks.remove(render(marked))
        if plain == prompt:
            return PlacedPrompt(prompt, spans)
    return PlacedPrompt(
        prompt,
        tuple(
            _place_one(render, prompt, texts, index, (outside[index], inside[index]), marks)
            for index in range(len(texts))
        ),
    )


def _place_one(
    render: Render,
    prompt: str,
    texts: Sequence[str],
    index: int,
    candidates: Sequence[str],
    marks: "_Marks",
) -> Span | None:
    """Return where one text lies, the others being left without marks."""
    for candidate in candidates:
        plain, spans = marks.remove(render([*texts[:index], candidate, *texts[index + 1 :]]))
        if plain == prompt:
            return spans[index]
    return None


class _Marks:
    """Character sequences that occur in none of the texts: ``(3(`` and ``)3)`` in private use."""

    _OPEN, _CLOSE, _END = "\ue0f1", "\ue0f2", "\ue0f3"

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        nonce = 0
        while any(f"{self._OPEN}{nonce}." in text for text in texts):
            nonce += 1
        self._nonce = nonce
        self._pattern = re.compile(f"{self._OPEN}{nonce}\\.([0-9]+)([{self._CLOSE}{self._END}])")

    def around(self, index: int, text: str) -> str:
        head = f"{self._OPEN}{self._nonce}.{index}"
        return f"{head}{self._CLOSE}{text}{head}{self._END}"

    def within(self, index: int, text: str) -> str:
        core = text.strip()
        start = len(text) - len(text.lstrip()) if core else 0
        return text[:start] + self.around(index, core) + text[start + len(core) :]

    def remove(self, marked: str) -> tuple[str, tuple[Span | None, ...]]:
        """Return the text without marks, and the spans of texts that stand there unchanged."""
        pieces: list[str] = []
        starts: dict[int, list[int]] = {}
        ends: dict[int, list[int]] = {}
        length = position = 0
        for match in self._pattern.finditer(marked):
            pieces.append(marked[position : match.start()])
            length += match.start() - position
            position = match.end()
            found = starts if match.group(2) == self._CLOSE else ends
            found.setdefault(int(match.group(1)), []).append(length)
        pieces.append(marked[position:])
        plain = "".join(pieces)
        return plain, tuple(
            self._span(plain, text, starts.get(index, []), ends.get(index, []))
            for index, text in enumerate(self._texts)
        )

    @staticmethod
    def _span(plain: str, text: str, starts: list[int], ends: list[int]) -> Span | None:
        if len(starts) != 1 or len(ends) != 1:
            return None
        span = Span(starts[0], ends[0])
        return span if plain[span.start : span.end] in (text, text.strip()) else None
