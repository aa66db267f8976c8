"""A model's chat template, run in a sandbox: conversation in, prompt text out."""

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from jinja2 import nodes
    from jinja2.ext import Extension
    from jinja2.parser import Parser
    from jinja2.utils import Namespace

    from runtime.tokenizer.bounded import BoundedEnvironment

Clock = Callable[[], dt.datetime]
TOO_LONG = "TemplateTooLongError"
"""The detail of the error of a template that would go on for too long."""


def local_time() -> dt.datetime:
    """Return the present time of the person's time zone, for templates that name the date."""
    return dt.datetime.now(tz=dt.UTC).astimezone()


class TemplateRefusalError(Exception):
    """The template itself refused a conversation, in its own words."""


class ChatTemplate:
    """One compiled template with the names that published templates expect.

    Raises ``LarderError`` with ``CHAT_TEMPLATE_INVALID`` where the template cannot be compiled or
    run, ``CONVERSATION_INVALID`` where it refuses the conversation.
    """

    def __init__(
        self, source: str, special_tokens: Mapping[str, str], clock: Clock = local_time
    ) -> None:
        import jinja2

        self._special_tokens = dict(special_tokens)
        self._environment = _environment(clock)
        try:
            self._template = self._environment.from_string(source)
        except (jinja2.TemplateError, SyntaxError, RecursionError) as error:
            raise _invalid(error) from error

    def render(
        self,
        messages: Sequence[Mapping[str, object]],
        add_generation_prompt: bool,
        tools: Sequence[Mapping[str, object]] | None = None,
    ) -> str:
        """Return the prompt text of messages that have at least ``role`` and ``content``."""
        import jinja2

        self._environment.allowance.renew()
        try:
            return self._template.render(
                messages=[dict(message) for message in messages],
                tools=tools,
                documents=None,
                add_generation_prompt=add_generation_prompt,
                **self._special_tokens,
            )
        except TemplateRefusalError as error:
            raise LarderError(ErrorCode.CONVERSATION_INVALID, reason=str(error)) from error
        except (
            jinja2.TemplateError,
            ArithmeticError,
            AssertionError,
            AttributeError,
            LookupError,
            MemoryError,
            RecursionError,
            TypeError,
            ValueError,
        ) as error:
            raise _invalid(error) from error


def _invalid(error: BaseException) -> LarderError:
    line = getattr(error, "lineno", None)
    where = f" (line {line})" if isinstance(line, int) else ""
    reason = f"{str(error) or type(error).__name__}{where}"
    return LarderError(ErrorCode.CHAT_TEMPLATE_INVALID, detail=type(error).__name__, reason=reason)


def _refuse(message: object) -> NoReturn:
    raise TemplateRefusalError(str(message))


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Return plain JSON; unlike the engine's own filter nothing is escaped for HTML."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _environment(clock: Clock) -> "BoundedEnvironment":
    """Return the sandbox: no attribute that could leave it, no change of what is handed in."""
    from jinja2.ext import loopcontrols

    from runtime.tokenizer.bounded import BoundedEnvironment

    def strftime_now(text_format: str) -> str:
        return clock().replace(tzinfo=None).strftime(text_format)

    environment = BoundedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[loopcontrols, _generation_extension()],
    )
    environment.add_filter("tojson", _to_json)
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = strftime_now
    environment.globals["namespace"] = _namespace_class()
    return environment


def _namespace_class() -> "type[Namespace]":
    """Return ``namespace`` without names that reach into the interpreter."""
    from jinja2.exceptions import SecurityError
    from jinja2.utils import Namespace

    class PlainNamespace(Namespace):
        """Values by name; names that begin with an underscore are refused."""

        def __init__(*args: object, **kwargs: object) -> None:
            self, *first = args  # so that a value may be called self
            Namespace.__init__(self, *first, **kwargs)
            for name in dict(*first, **kwargs):
                _refuse_private(name)

        def __setitem__(self, name: str, value: object) -> None:
            _refuse_private(name)
            super().__setitem__(name, value)

    def _refuse_private(name: object) -> None:
        if isinstance(name, str) and name.startswith("_"):
            raise SecurityError(f"a namespace has no value called {name}")

    return PlainNamespace


def _generation_extension() -> "type[Extension]":
    """Return the extension that accepts ``{% generation %}`` blocks and leaves their text as is."""
    from jinja2 import nodes
    from jinja2.ext import Extension

    class GenerationBlock(Extension):
        """Training marks around the assistant's words; they mean nothing when answering."""

        tags = {"generation"}  # noqa: RUF012 (the base class declares it so)

        def parse(self, parser: "Parser") -> "nodes.Node | list[nodes.Node]":
            """Return the statements inside the block; what they set stays inside."""
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    return GenerationBlock
