"""Templates made at random: each gives a text or a refusal, soon, and shows nothing from inside."""

import time

import hypothesis
from hypothesis import strategies as st

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.tokenizer import bounded
from runtime.tokenizer.template import ChatTemplate

_NAMES = (
    "messages",
    "messages[0]",
    "n.x",
    "a",
    "range(7)",
    "eos_token",
    "none",
    "true",
    "loop",
    "namespace",
    "cycler('a', 'b')",
    "joiner()",
    "dict(a=1)",
    "tools",
    "self",
    "m",
    "raise_exception",
    "strftime_now",
    "undefined_name",
    "{'a': 1}",
    "['a', 'b']",
)
_TEXTS = (
    "''",
    "'ab'",
    "'%s'",
    "'%*d'",
    "'{}'",
    "'{0.__class__}'",
    "'{:>99}'",
    "'a' * 99",
    "'é日🥐'",
    "'<|im_end|>'",
    "'__class__'",
    "'\\x00'",
)
_NUMBERS = ("0", "-1", "2", "1.5", "10 ** 9", "99999999999")
_FILTERS = (
    "upper",
    "length",
    "list",
    "join('x')",
    "tojson",
    "string",
    "sort",
    "first",
    "last",
    "attr('format')",
    "attr('__class__')",
    "map('upper') | list",
    "replace('a', 'bb')",
    "sum",
    "map(attribute='role') | list",
    "selectattr('role') | list",
    "groupby('role')",
    "pprint",
    "format(1)",
    "center(99)",
    "indent(9)",
    "batch(2) | list",
    "slice(2) | list",
    "xmlattr",
    "urlize",
    "unique | list",
    "reverse | list",
    "default('d', true)",
    "int",
    "wordwrap(3)",
    "items | list",
    "trim",
    "e",
    "safe",
    "dictsort",
    "min",
    "max",
    "random",
)
_ATTRIBUTES = (
    ".x",
    ".role",
    ".content",
    "[0]",
    "[-1]",
    "['__class__']",
    ".__class__",
    ".format",
    ".format(1)",
    ".join(['a'])",
    ".pop",
    ".append(1)",
    ".items()",
    ".__init__",
    "[::-1]",
    ".split()",
    ".strip()",
    ".gi_frame",
    ".index0",
    "()",
    "('a')",
    ".upper()",
)
_OPERATORS = ("+", "-", "*", "~", "%", "**", "//", "==", "<", "in", "and", "or", "is defined and")
_INSIDE = (
    "<class 'object'",
    "<class 'type'",
    "<class 'str'",
    "<class 'list'",
    "<module",
    "<code object",
    "<frame",
    "{'__name__'",
    "__builtins__",
)
"""What is shown of the interpreter only by a way out; ``namespace`` itself may be printed."""


def _longer(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({}){}".format, inner, st.sampled_from(_ATTRIBUTES)),
        st.builds("({}) | {}".format, inner, st.sampled_from(_FILTERS)),
        st.builds("({}) {} ({})".format, inner, st.sampled_from(_OPERATORS), inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
    )


expressions = st.recursive(st.sampled_from([*_NAMES, *_TEXTS, *_NUMBERS]), _longer, max_leaves=6)


def _deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(inner, min_size=1, max_size=3).map("".join)
    return st.one_of(
        st.builds("{{% for a in {} %}}{}{{% endfor %}}".format, expressions, body),
        st.builds("{{% if {} %}}{}{{% endif %}}".format, expressions, body),
        st.builds("{{% macro m(a) %}}{}{{% endmacro %}}{{{{ m({}) }}}}".format, body, expressions),
        st.builds("{{% set a %}}{}{{% endset %}}{{{{ a }}}}".format, body),
        st.builds("{{% call m(1) %}}{}{{% endcall %}}".format, body),
        st.builds("{{% filter upper %}}{}{{% endfilter %}}".format, body),
    )


pieces = st.recursive(
    st.one_of(
        st.builds("{{{{ {} }}}}".format, expressions),
        st.builds("{{% set n.x = {} %}}".format, expressions),
        st.builds("{{% set a = {} %}}".format, expressions),
        st.text(max_size=5),
        st.sampled_from(["{%", "}}", "{% break %}", "{% endfor %}", "{#", "{% include 'x' %}"]),
    ),
    _deeper,
    max_leaves=8,
)


@hypothesis.given(st.lists(pieces, max_size=5).map("".join))
@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.too_slow])
def test_template_made_at_random_gives_a_text_or_a_refusal(source: str) -> None:
    messages = [{"role": "user", "content": "hello"}]
    begun_s = time.process_time()
    shown, code = "", None
    try:
        template = ChatTemplate("{% set n = namespace(x='ab') %}" + source, {"eos_token": "</s>"})
        shown = template.render(messages, True)
    except LarderError as refusal:
        code = refusal.code
    assert code in (None, ErrorCode.CHAT_TEMPLATE_INVALID, ErrorCode.CONVERSATION_INVALID)
    assert not any(inside in shown for inside in _INSIDE), shown
    assert messages == [{"role": "user", "content": "hello"}]
    assert len(shown) <= bounded.MAX_STEPS * bounded.CHARACTERS_PER_STEP
    assert time.process_time() - begun_s < 6 * bounded.MAX_SECONDS
