"""Names and sentences from outside, shown letter by letter.

Names of groups, topics and clients are written by strangers. Streamlit reads most texts as Markdown with additions
(``:red[…]``, ``:material/…:``, ``$…$``, ``:streamlit:``, ``->``), and Plotly reads texts as HTML.
"""

import html
import re

from lagwise.platform.logs import escape

#: Every ASCII punctuation mark may be escaped by a backslash (CommonMark 0.31, section 2.4).
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
#: Replaced after Markdown was read, so that a backslash does not help: ``:streamlit:``, arrows that stand alone, and
#: what looks like an address, which becomes a link. An invisible character after the first one parts them.
_AFTERWARDS = re.compile(r":(?=streamlit:|//)|www(?=\.)|@|(?<!\S)(?:<->|<-|->|--|>=|<=|~=)(?!\S)", re.IGNORECASE)
_WORD_JOINER = "\u2060"


def visible(text: str | None) -> str:
    """Outside text as one visible line: control characters and changes of direction become escapes. Not
    yet Markdown."""
    return escape(text) if text else ""


def markdown(text: str | None) -> str:
    """Outside text for a place that reads Markdown: it comes out exactly as it was written."""
    parted = _AFTERWARDS.sub(lambda match: match[0][0] + _WORD_JOINER + match[0][1:], visible(text))
    return _PUNCTUATION.sub(r"\\\1", parted)


def heading(text: str) -> str:
    """Outside text as a heading of Markdown, which is never empty."""
    return markdown(text) or "(empty name)"


def quoted(text: str, *, max_length: int) -> str:
    """Outside text in a sentence of Markdown, set apart by quotation marks and cut where it is long."""
    line = visible(text)
    return f"“{markdown(line if len(line) <= max_length else line[: max_length - 1] + '…')}”"


def plotly(text: str | None, *, max_length: int = 60) -> str:
    """Outside text for a Plotly label: no markup, cut where it would push the chart aside."""
    line = visible(text)
    return html.escape(line if len(line) <= max_length else line[: max_length - 1] + "…")
