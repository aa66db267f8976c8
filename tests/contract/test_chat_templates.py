"""Published chat templates render as transformers renders them, refusals included.

``LARDER_MORE_TEMPLATES`` names a folder with further templates to compare.
"""

import datetime as dt
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import pytest
from transformers.utils import chat_template_utils

from runtime.errors import LarderError
from runtime.protocol.chat import ChatMessage, Role
from runtime.tokenizer.template import ChatTemplate
from runtime.tokenizer.turns import as_template_sees, words_of

FOLDER = Path(__file__).parents[1] / "golden" / "chat-templates"
MORE = os.environ.get("LARDER_MORE_TEMPLATES")
PATHS = sorted(
    {
        path.name: path
        for folder in (FOLDER, *([Path(MORE)] if MORE else []))
        for path in folder.glob("*.jinja")
    }.values()
)
NOW = dt.datetime(2025, 3, 4, 5, 6, 7, tzinfo=dt.UTC)
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
FAILURES = (jinja2.TemplateError, ArithmeticError, LookupError, TypeError, ValueError)
Turns = Sequence[Mapping[str, Any]]
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the “weather” <now>.",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "Where"},
                "days": {"type": "integer", "description": "How many", "default": 1},
                "unit": {"type": "string", "enum": ["c", "f"]},
            },
            "required": ["place"],
        },
    },
}
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {
            "id": "call12345",
            "type": "function",
            "function": {"name": "weather", "arguments": {"place": "Köln", "days": 2}},
        }
    ],
}


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(text: str, thinking: str = "") -> dict[str, Any]:
    return {"role": "assistant", "content": text, **({"thinking": thinking} if thinking else {})}


TALKS: dict[str, Turns] = {
    "first turn": [user("Hello, who are you?")],
    "first turn with system": [system("Be kind."), user("Hi")],
    "several turns": [
        system("Be kind."), user("a"), answer("b"), user("c"), answer("d"), user("e"),
    ],
    "system only": [system("Be kind.")],
    "earlier thinking": [
        user("a"), answer("b", "hm\n\nso"), user("c"), answer("d", "again"), user("e"),
    ],
    "thinking in the text": [user("a"), answer("<think>\nhm\n</think>\n\nb"), user("c")],
    "answer last": [user("a"), answer("b", "hm")],
    "edited turns": [
        user("  a\n\n"), answer("\n b "), user('é<b> "q" \'r\' \\n {{ 7 }}'), answer(""),
        user("猫"),
    ],
    "two questions": [user("a"), user("b")],
    "two answers": [user("a"), answer("b"), answer("c"), user("d")],
    "late system": [user("a"), answer("b"), system("Be short."), user("c")],
}  # fmt: skip
WITH_TOOLS: dict[str, Turns] = {
    "offered": [user("Weather?")],
    "offered with system": [system("Be kind."), user("Weather?")],
    "called": [
        user("Weather?"),
        CALL,
        {"role": "tool", "name": "weather", "tool_call_id": "call12345", "content": "sunny"},
        answer("Sunny."),
        user("Thanks"),
    ],
    "called just now": [
        user("Weather?"),
        CALL,
        {"role": "tool", "name": "weather", "tool_call_id": "call12345", "content": "sunny"},
    ],
}


@pytest.fixture(autouse=True)
def _same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Then(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> "Then":
            return cls(2025, 3, 4, 5, 6, 7, tzinfo=tz)

    monkeypatch.setattr(chat_template_utils, "datetime", Then)


def reference(source: str, turns: Turns, **options: Any) -> str | Exception:
    render: Callable[..., Any] = chat_template_utils.render_jinja_template
    chat = [dict(turn) for turn in turns]
    try:
        texts, _ = render([chat], chat_template=source, **SPECIAL, **options)
    except FAILURES as error:
        return error
    return str(texts[0])


@functools.cache
def compiled(source: str) -> ChatTemplate:
    return ChatTemplate(source, SPECIAL, lambda: NOW)


def ours(source: str, turns: Turns, **options: Any) -> str | LarderError:
    try:
        return compiled(source).render(turns, **options)
    except LarderError as error:
        return error


def assert_equal(found: str | LarderError, expected: str | Exception) -> None:
    if isinstance(expected, Exception):
        assert isinstance(found, LarderError)
        assert str(expected) in str(found.parameters["reason"])
    else:
        assert found == expected


def seen(turns: Turns) -> list[dict[str, object]]:
    """Return the turns as the program hands them to a template."""
    messages = [
        ChatMessage(
            role=Role(turn["role"]), text=turn["content"], thinking=turn.get("thinking", "")
        )
        for turn in turns
    ]
    return as_template_sees(messages, words_of(messages))


@pytest.mark.parametrize("name", TALKS)
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_template_renders_as_in_transformers(path: Path, name: str) -> None:
    source, turns = path.read_text(encoding="utf-8"), TALKS[name]
    for is_asked in (True, False):
        options = {"add_generation_prompt": is_asked}
        assert_equal(ours(source, seen(turns), **options), reference(source, turns, **options))


@pytest.mark.parametrize("name", WITH_TOOLS)
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_template_renders_tools_as_in_transformers(path: Path, name: str) -> None:
    source, turns = path.read_text(encoding="utf-8"), WITH_TOOLS[name]
    options: dict[str, Any] = {"add_generation_prompt": True, "tools": [TOOL]}
    assert_equal(ours(source, turns, **options), reference(source, turns, **options))


CONSTRUCTS = (
    "{{ strftime_now('%d %B %Y %H:%M %Z') }}",
    "{% for m in messages[::-1] %}{{ loop.index0 }}{{ m.content }}{% endfor %}",
    "{% for m in messages %}{% if loop.index == 2 %}{% continue %}{% endif %}x{% endfor %}",
    "{% for m in messages %}{% break %}{% endfor %}{{ messages | length }}",
    "{% set n = namespace(a=1) %}{% for m in messages %}{% set n.a = 2 %}{% endfor %}{{ n.a }}",
    "{% generation %}{% set a = 1 %}{{ a }}{% endgeneration %}{{ a is defined }}",
    "{{ messages | tojson }} {{ messages | tojson(indent=2) }}",
    "{{ 'é<b>&' | tojson }} {{ {'b': 1, 'a': [none, true, 1.5]} | tojson(sort_keys=True) }}",
    "{{ {'a': 1} | tojson(separators=(',', ':')) }} {{ 'é' | tojson(ensure_ascii=True) }}",
    "{{ ' a b '.strip().split(' ')[-1].upper().replace('B', 'c').startswith('c') }}",
    "{{ 'a\\n'.rstrip('\\n') ~ 'b'.lstrip() ~ 'abc'[1:] ~ 'abc'[::-1] ~ 'ab'.title() }}",
    "{{ messages | map(attribute='role') | list }}",
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}",
    "{{ raise_exception('no more') }}",
    "{{ namespace(__class__=1) }}",
    "{{ messages[0].__class__ }}",
    "{{ messages.append(1) }}",
    "{{ dict(a=1) | items | list }} {{ {'b': 1, 'a': 2} | dictsort }}",
    "  {% if true %}\n  a\n  {%- endif %}\n b\n",
    "{% macro f(x, y=2) %}{{ x }}{{ y }}{{ caller() if caller }}{% endmacro %}{{ f(1) }}",
    "{{ bos_token }}{{ eos_token }}{{ sep_token is defined }}{{ tools is none }}{{ x }}",
    "{{ messages[-1]['content'] if messages[-1] is mapping and messages is sequence }}",
    "{{ '%s-%d' % ('a', 3) }} {{ '{}'.format(1) }} {{ 3 // 2 }} {{ 'a' in 'abc' }}",
)


@pytest.mark.parametrize("source", CONSTRUCTS)
def test_construct_means_what_it_means_in_transformers(source: str) -> None:
    turns = [user("é 1"), answer("b"), user("c")]
    options = {"add_generation_prompt": True}
    expected = reference(source, turns, **options)
    found = ours(source, turns, **options)
    if isinstance(expected, Exception):
        assert isinstance(found, LarderError)
    else:
        assert found == expected
