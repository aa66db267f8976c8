"""Which parts of code have which colour."""

MAX_HIGHLIGHTED_CHARACTERS = 60_000
"""Longer blocks stay plain: highlighting them would hold up the window."""

Span = tuple[int, int, str]
"""Start and length in a line, and the name of the palette's colour."""


def highlight_spans(text: str, language: str) -> list[list[Span]]:
    """Return the coloured spans of each line, found by Pygments; empty for an unknown language."""
    from pygments.lexers import get_lexer_by_name
    from pygments.token import Comment, Keyword, Name, Number, String, _TokenType
    from pygments.util import ClassNotFound

    if not language or len(text) > MAX_HIGHLIGHTED_CHARACTERS:
        return []
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return []
    colours: dict[_TokenType, str] = {
        Keyword: "code_keyword",
        String: "code_string",
        Number: "code_number",
        Comment: "code_comment",
        Name.Function: "code_name",
        Name.Class: "code_name",
        Name.Builtin: "code_name",
    }
    lines: list[list[Span]] = [[]]
    column = 0
    for token, value in lexer.get_tokens(text):
        colour = next((colours[kind] for kind in reversed(token.split()) if kind in colours), "")
        for number, piece in enumerate(value.split("\n")):
            if number:
                lines.append([])
                column = 0
            if colour and piece:
                lines[-1].append((column, len(piece), colour))
            column += len(piece)
    return lines
