"""The sandbox that templates of strangers run in: bounded in time and in the text that they build.

A template may loop, and double a text in each step. So each pass of a loop, each call of a macro
and each few hundred characters that are joined or repeated take one step, and steps and time are
limited. An operation is charged before it is done, by the most that it can make.
"""

import functools
import re
import threading
import time
from collections.abc import Callable
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import TemplateRuntimeError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

MAX_STEPS = 300_000
MAX_SECONDS = 10.0
CHARACTERS_PER_STEP = 250
_TEXT_MAKERS = ("format", "join", "json", "string", "pprint", "xmlattr", "urlize", "str")
_SIZED = (str, bytes, list, tuple, dict, set, frozenset, range)
_WIDE_PERCENT = re.compile(r"%(\([^)]*\))?[-+ #0\d.]*(\d{6}|\*)")
_WIDE_BRACES = re.compile(r"\{[^{}]*:[^{}]*(\d{6}|\{)")
"""Fields with a width that is too large, or that comes from the values."""
_COMPARERS = frozenset(
    {
        *("eq", "ge", "gt", "le", "lt", "ne", "test_in", "count", "index"),
        *("do_dictsort", "do_groupby", "sync_do_groupby", "do_max", "do_min", "do_sort"),
        "do_unique",
    }
)
"""What looks into things that are inside of others to compare them."""


class TemplateTooLongError(TemplateRuntimeError):
    """The template would go on for too long, or build a text that is too large."""


class Allowance(threading.local):
    """The steps that are left of one rendering. Threads: each has its own."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.renew()

    def renew(self) -> None:
        """Begin a rendering."""
        self._num_left = MAX_STEPS
        self._end_s = self._clock() + MAX_SECONDS

    def take(self, size: int = 0) -> None:
        """Take one step, and those for ``size`` characters or items."""
        self._num_left -= 1 + size // CHARACTERS_PER_STEP
        if self._num_left < 0 or self._clock() > self._end_s:
            raise TemplateTooLongError("it goes on for too long, or builds too large a text")


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox with an allowance; ``renew`` it before each rendering."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, **options: Any) -> None:  # noqa: ANN401
        self.allowance = Allowance(clock)
        super().__init__(finalize=self._finalised, **options)
        self.filters = {
            name: self._bounded_filter(function) for name, function in self.filters.items()
        }
        tests: dict[str, Any] = self.tests
        self.tests = {name: self._bounded_filter(test) for name, test in tests.items()}
        self.globals["range"] = self._range
        del self.globals["lipsum"]

    def add_filter(self, name: str, function: Callable[..., object]) -> None:
        """Offer a further filter."""
        self.filters[name] = self._bounded_filter(function)

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> object:
        """Compute one of the operators that can make something large."""
        if operator == "**":
            # Whole numbers grow with the square of their digits in work, so each counts in full.
            self.allowance.take(_power_digits(left, right) * 10)
        elif operator == "*":
            self.allowance.take(_size(left) * _count(right) + _size(right) * _count(left))
        elif operator == "+":
            self.allowance.take(_size(left) + _size(right))
        elif isinstance(left, str):
            _refuse_wide(_WIDE_PERCENT, left)
            self._charge_text(left, right)
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Call something that a template named."""
        owner = getattr(obj, "__self__", None)
        if owner is self:
            return obj(*args)
        self._charge(owner, args, kwargs, getattr(obj, "__name__", ""))
        return super().call(context, obj, *args, **kwargs)

    def tick(self) -> str:
        """Take a step; what it returns shows nothing."""
        self.allowance.take()
        return ""

    def joined(self, *parts: object) -> str:
        """Return what the operator ``~`` gives."""
        self._charge_text(*parts)
        return "".join(map(str, parts))

    def weighed(self, value: object) -> object:
        """Return a value that is about to be compared, after charging for what is inside of it."""
        if not isinstance(value, str):
            self._charge_text(value)
        return value

    def wrap_str_format(self, value: object) -> Callable[..., str] | None:
        """Return what stands for a text's own ``format``, None for another value."""
        wrapped = super().wrap_str_format(value)
        if wrapped is not None:
            format_text = str(getattr(value, "__self__", ""))
            _refuse_wide(_WIDE_BRACES, format_text.replace("{{", ""))
        return wrapped

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:  # noqa: ANN401
        bounded = _Bounding(self).visit(source)
        return super()._generate(bounded, *args, **kwargs)

    def _range(self, *args: int) -> range:
        numbers = range(*args)
        self.allowance.take(len(numbers))
        return numbers

    def _bounded_filter(self, function: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(function)
        def bounded(*args: object, **kwargs: object) -> object:
            self._charge(None, args, kwargs, function.__name__)
            return function(*args, **kwargs)

        return bounded

    def _charge(
        self,
        owner: object,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        name: str,
    ) -> None:
        """Take steps for what a call reads and for the width or number that it is given."""
        values = [owner, *args, *kwargs.values()]
        sizes = [_size(value) for value in values]
        size = sum(sizes) + sum(map(_count, values))
        if "replace" in name or "join" in name:
            size += _product(sizes)
        if "indent" in name:
            size += max(sizes) * sum(map(_count, values))
        if name in _COMPARERS or any(word in name for word in _TEXT_MAKERS):
            self._charge_text(*values)
        if name == "do_format":
            _refuse_wide(_WIDE_PERCENT, str(args[0]))
        self.allowance.take(size)

    def _charge_text(self, *values: object) -> None:
        """Take steps for the text that values become, things inside of things as often as shown."""
        waiting = list(values)
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict):
                waiting += [*value.keys(), *value.values()]
            elif isinstance(value, list | tuple | set | frozenset):
                waiting += value
            self.allowance.take(len(value) if isinstance(value, str) else 0)

    def _finalised(self, value: object) -> object:
        """Return a value that the template shows, after charging for it."""
        self._charge_text(value)
        return value


class _Bounding(NodeTransformer):
    """Puts a step into every loop and macro, and its own joining in place of ``~``."""

    def __init__(self, environment: BoundedEnvironment) -> None:
        self._environment = environment

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802
        return self._with_step(node)

    def visit_Macro(self, node: nodes.Macro) -> nodes.Node:  # noqa: N802
        return self._with_step(node)

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.Node:  # noqa: N802
        return self._with_step(node)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        parts = [self.visit(part) for part in node.nodes]
        return self._call("joined", parts, node.lineno)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.expr = self._weighed(node.expr)
        for operand in node.ops:
            operand.expr = self._weighed(operand.expr)
        return node

    def _weighed(self, value: nodes.Expr) -> nodes.Expr:
        is_plain = isinstance(value, nodes.Const)
        return value if is_plain else self._call("weighed", [value], value.lineno)

    def _with_step(self, node: "nodes.For | nodes.Macro | nodes.CallBlock") -> nodes.Node:
        self.generic_visit(node)
        step = nodes.ExprStmt(self._call("tick", [], node.lineno), lineno=node.lineno)
        node.body.insert(0, step)
        return node

    def _call(self, name: str, args: list[nodes.Expr], line: int) -> nodes.Call:
        function = nodes.EnvironmentAttribute(name, lineno=line)
        call = nodes.Call(function, args, [], None, None, lineno=line)
        call.set_environment(self._environment)
        return call


def _refuse_wide(field: re.Pattern[str], format_text: str) -> None:
    """Refuse a format with a field that is wider than any that is meant."""
    if field.search(format_text):
        raise TemplateTooLongError("it asks for a text that is too large")


def _size(value: object) -> int:
    """Return the length of a text or another thing that has one, else 0."""
    return len(value) if isinstance(value, _SIZED) else 0


def _count(value: object) -> int:
    """Return a whole number as a number of times, else 0."""
    return abs(value) if isinstance(value, int) and not isinstance(value, bool) else 0


def _product(sizes: list[int]) -> int:
    """Return the most that one of several texts repeated in another can be."""
    first, second = sorted(sizes)[-2:] if len(sizes) > 1 else (0, 0)
    return first * second


def _power_digits(base: object, exponent: object) -> int:
    """Return about how many digits a power of whole numbers has."""
    if isinstance(base, int) and isinstance(exponent, int):
        return abs(exponent) * max(1, base.bit_length())
    return 0
