"""Pages that need no other file, on light and dark screens; their style is in pages.css."""

from __future__ import annotations

from html import escape
from pathlib import Path

__all__ = ["page"]

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
