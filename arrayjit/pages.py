"""Pages that need no other file, on light and dark screens; their style is in pages.css. What users
look at is saved as such, or as what else the name of a file asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path

from .errors import UnsupportedError

__all__ = ["page", "save"]

STYLE = Path(__file__).with_name("pages.css")
PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<meta name="viewport" content="width=device-width">
<style>
{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def page(title: str, body: str) -> str:
    """A page of HTML; the body is HTML."""
    return PAGE.format(title=escape(title), style=STYLE.read_text(encoding="utf-8"), body=body)


def save(file: str | Path, what: str, forms: Mapping[str, Callable[[], str]]) -> None:
    """Write a file in the one of these forms, by endings, that its name asks for; `what` it is stands in the
    message. Raises UnsupportedError for another ending, OSError where the file cannot be written."""
    path = Path(file)
    form = forms.get(path.suffix.lower())
    if form is None:
        raise UnsupportedError(
            f"{what} is no {path.suffix or 'file without an ending'}",
            fix=f"name a file that ends in {', '.join(forms)}",
        )
    path.write_text(form(), encoding="utf-8")
