"""The page's table and its picture, from the scores."""

from collections.abc import Mapping, Sequence
from html import escape

from benchmarks.verdicts.rules import LAGWISE
from benchmarks.verdicts.score import Figures, Score

BEGIN, END = "<!-- Written by `python -m benchmarks verdicts`; do not edit. -->", "<!-- End of what is written. -->"
HEADINGS = (
    "rule",
    "time right",
    "unknown where it is",
    "troubles found",
    "delay, median",
    "delay, worst",
    "false alarms an hour",
    "switches while nothing changed",
    "silent while records are too old",
    "false alarms in the noisy day",
    "false alarms in the day of operations",
)
#: The last columns are of the healthy days, which take minutes.
DAYS = 2


def cells_of(name: str, figures: Figures) -> list[str]:
    """A rule's cells in the table, but for those of the healthy days."""
    return [
        f"**{name}**" if name == LAGWISE else name,
        f"{100 * figures.right:.1f} %" if figures.right < 1 else "100 %",
        f"{100 * figures.unknown:.0f} %",
        f"{figures.found} of {figures.onsets}",
        f"{figures.median_delay:.0f} s",
        f"{figures.worst_delay:.0f} s",
        f"{figures.false_alarms_per_hour:.2f}" if figures.false_alarms_per_hour else "0",
        f"{figures.switches:,}",
        f"{100 * figures.silent:.0f} %",
    ]


def table(figures: Mapping[str, Figures], of_days: Mapping[str, Sequence[str]]) -> str:
    """The table, rules in the order in which they are given; ``of_days`` are the cells of the last columns."""
    lines = ["| " + " | ".join(HEADINGS) + " |", "|---|" + "---:|" * (len(HEADINGS) - 1)]
    lines += ["| " + " | ".join([*cells_of(name, its), *of_days[name]]) + " |" for name, its in figures.items()]
    return "\n".join(lines)


def rows_of(page: str) -> dict[str, list[str]]:
    """The cells of the page's table, by rule. Raises ValueError where the page has none."""
    lines = page.partition(BEGIN)[2].partition(END)[0].strip().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    if not cells or tuple(cells[0]) != HEADINGS:
        raise ValueError("the page's table has other headings: write it anew, the healthy days included")
    return {row[0].strip("*"): row for row in cells[2:]}


def with_table(page: str, made: str) -> str:
    """The page with its table replaced. Raises ValueError where the page has no place for it."""
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError("the page lacks the lines between which its table is written")
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{after}"


# --- the picture ---

_LEFT, _TOP, _CELL, _ROW, _GAP = 208, 74, 126, 23, 3
#: A share of time from which on a cell has this class, and the next stronger one below it.
_CLASSES = ((1.0, "full"), (0.97, "s1"), (0.9, "s2"), (0.75, "s3"), (0.6, "s4"), (0.0, "s5"))
_STYLE = """
  text { font: 13px -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #24292f; }
  .head { font-weight: 600; } .small { font-size: 12px; fill: #57606a; }
  .value { text-anchor: middle; font-size: 12px; }
  .full { fill: #e6eef6; } .s1 { fill: #fde3c8; } .s2 { fill: #fbc793; } .s3 { fill: #f29a4a; } .s4 { fill: #c95a12; }
  .s5 { fill: #a8400b; } .on-dark { fill: #ffffff; } .on-full { fill: #57606a; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .small { fill: #9198a1; }
    .full { fill: #1c2733; } .s1 { fill: #4d3319; } .s2 { fill: #774516; } .s3 { fill: #b5611a; } .s4 { fill: #e07b27; }
    .s5 { fill: #ffa657; } .on-dark { fill: #0d1117; } .on-full { fill: #9198a1; }
  }
"""


def picture(names: Sequence[str], scores: Mapping[str, Sequence[Score]]) -> str:
    """An SVG for light and dark pages: a row per trace, a column per rule; colour for wrong time."""
    rules = list(scores)
    width, height = _LEFT + len(rules) * (_CELL + _GAP) + 8, _TOP + len(names) * (_ROW + _GAP) + 34
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" aria-labelledby="title">',
        '<title id="title">Share of time in which each rule was right, trace by trace</title>',
        f"<style>{_STYLE}</style>",
        '<text class="head" x="4" y="20">Share of time right, per trace</text>',
        '<text class="small" x="4" y="38">an alarm where there is trouble, none where there is not</text>',
    ]
    for column, rule in enumerate(rules):
        middle = _LEFT + column * (_CELL + _GAP) + _CELL / 2
        svg.append(f'<text class="head" text-anchor="middle" x="{middle:g}" y="{_TOP - 12}">{escape(rule)}</text>')
    for row, name in enumerate(names):
        y = _TOP + row * (_ROW + _GAP)
        svg.append(f'<text x="4" y="{y + 16}">{escape(name)}</text>')
        for column, rule in enumerate(rules):
            svg += _cell(_LEFT + column * (_CELL + _GAP), y, scores[rule][row].right)
    below = _TOP + len(names) * (_ROW + _GAP) + 20
    svg.append(f'<text class="small" x="4" y="{below}">The stronger the colour, the longer the rule was wrong.</text>')
    return "\n".join([*svg, "</svg>"]) + "\n"


def _cell(x: float, y: float, share: float) -> list[str]:
    name = next(its for least, its in _CLASSES if share >= least)
    ink = {"full": " on-full", "s4": " on-dark", "s5": " on-dark"}.get(name, "")
    # Right but for a moment is not right all the time.
    shown = "100 %" if share == 1 else f"{min(99, round(100 * share))} %"
    return [
        f'<rect class="{name}" x="{x:g}" y="{y:g}" width="{_CELL}" height="{_ROW}" rx="4"/>',
        f'<text class="value{ink}" x="{x + _CELL / 2:g}" y="{y + 16:g}">{shown}</text>',
    ]
