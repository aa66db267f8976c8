"""Ways out of the sandbox that were published for Jinja: none leads out of a chat template."""

import contextlib
import subprocess

import jinja2
import pytest

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.tokenizer.template import ChatTemplate

ESCAPES = (
    # The interpreter's own names, spelled in every way that reaches an attribute.
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ ''['__class__'] }}",
    "{{ ''['__cla' ~ 'ss__'] }}",
    "{{ '' | attr('__class__') }}",
    "{{ '' | attr('\\x5f\\x5fclass\\x5f\\x5f') }}",
    "{{ [''] | map(attribute='__class__') | list }}",
    "{{ [''] | map('attr', '__class__') | list }}",
    "{{ [''] | groupby('__class__') }}",
    "{{ [''] | sort(attribute='__class__.__name__') }}",
    "{{ [''] | sum(attribute='__class__', start='') }}",
    "{{ [''] | unique(attribute='__class__') | list }}",
    "{{ [''] | min(attribute='__class__') }}",
    "{{ [['', '']] | map(attribute='0.__class__') | list }}",
    # What templates are given, and what stands behind it.
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "{{ joiner.__init__.__globals__ }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ raise_exception.__globals__ }}",
    "{{ strftime_now.__closure__ }}",
    "{{ strftime_now.__code__ }}",
    "{{ range.__self__ }}",
    "{{ dict.__base__ }}",
    "{{ self._TemplateReference__context }}",
    "{{ self.__init__.__globals__ }}",
    "{{ messages.__class__ }}",
    "{{ messages[0].pop.__self__.__class__ }}",
    "{{ loop.__class__ }}{% for a in [1] %}{{ loop.__init__.__globals__ }}{% endfor %}",
    "{% macro m() %}{% endmacro %}{{ m.__init__.__globals__ }}",
    "{% macro m() %}{% endmacro %}{{ m._func.__globals__ }}",
    "{% macro m() %}{{ caller.__init__.__globals__ }}{% endmacro %}{% call m() %}{% endcall %}",
    # CVE-2016-10745 and CVE-2019-10906: format strings that look inside.
    "{{ '{0.__class__.__mro__}'.format('') }}",
    "{{ '{a.__class__}'.format_map({'a': ''}) }}",
    "{{ '{a.__class__}'.format(a='') }}",
    # CVE-2024-56326 and CVE-2025-27516: the same function by a detour.
    "{{ ('{0.__class__}' | attr('format'))('') }}",
    "{{ ('{0.__class__}' | attr('format_map'))({'0': ''}) }}",
    "{% set f = '{0.__class__}'.format %}{{ f('') }}",
    "{% set f = '{0.__class__}' | attr('format') %}{{ f('') }}",
    "{{ ['{0.__class__}'.format][0]('') }}",
    # Frames of what runs.
    "{{ (messages | map('upper')).gi_frame }}",
    "{{ (messages | map('upper')).gi_frame.f_globals }}",
    "{{ (messages | select).gi_code }}",
    # Files, modules and other templates.
    "{% include '/etc/passwd' %}",
    "{% extends '/etc/passwd' %}",
    "{% import 'os' as os %}{{ os.system('id') }}",
    "{% from 'os' import system %}{{ system('id') }}",
    # Changing what is handed in.
    "{{ messages.clear() }}",
    "{{ messages[0].update({'role': 'x'}) }}",
    "{{ messages.__setitem__(0, 1) }}",
    "{% set n = namespace() %}{% set n.__class__ = 1 %}",
    "{{ namespace(__class__=1) }}",
    "{{ namespace({'__class__': 1}) }}",
)
NUM_LEADING_OUT = 15
_INSIDE = ("<class", "<module", "<code", "<function", "<frame", "built-in", "uid=", "root:")


@pytest.mark.parametrize("source", ESCAPES)
def test_template_by_a_published_way_out_gets_nowhere(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **_: started.append(args))
    monkeypatch.setattr("os.popen", lambda *args: started.append(args))
    monkeypatch.setattr("os.system", lambda *args: started.append(args))
    messages = [{"role": "user", "content": "hello"}]
    shown, codes = "", []
    try:
        shown = ChatTemplate(source, {"eos_token": "</s>"}).render(messages, True)
    except LarderError as refusal:
        codes.append(refusal.code)
    assert codes in ([], [ErrorCode.CHAT_TEMPLATE_INVALID])
    assert not any(inside in shown for inside in _INSIDE), shown
    assert started == []
    assert messages == [{"role": "user", "content": "hello"}]


def test_published_ways_out_lead_out_where_there_is_no_sandbox() -> None:
    messages = [{"role": "user", "content": "hello"}]
    open_environment = jinja2.Environment(autoescape=False)
    leading_out = 0
    for source in ESCAPES:
        if "os" in source.split("{{")[-1] or "{%" in source:
            continue
        with contextlib.suppress(jinja2.TemplateError, LookupError, TypeError, ValueError):
            shown = open_environment.from_string(source).render(messages=messages)
            leading_out += any(inside in shown for inside in _INSIDE)
    assert leading_out >= NUM_LEADING_OUT
