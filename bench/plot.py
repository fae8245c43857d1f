"""Draws figures of benchmarks as SVG files that need no other files, for light and dark pages."""

import html
import math

_WIDTH, _HEIGHT = 720, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 24, 48, 60  # Margins. The legend is below the title.
_LEGEND_LINE = 20
# Neighbouring lines differ in colour and in dashes. The colours are those of Okabe and Ito, which
# the colour-blind can tell apart. The dashes differ even in print without colours.
_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"]
_DASHES = ["none", "7 3", "2 3", "9 3 2 3"]
_STYLE = """
  svg { --paper: #ffffff; --ink: #1a1a1a; --rule: #d8d8d8; font: 13px system-ui, sans-serif; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #16181c; --ink: #e8e8e8; --rule: #3c4048; }
  }
  .paper { fill: var(--paper); }
  text { fill: var(--ink); }
  .title { font-size: 16px; font-weight: 600; }
  .rule { stroke: var(--rule); }
  .axis { stroke: var(--ink); }
  .line { fill: none; stroke-width: 2; }
"""


def nice_ticks(top):
    """Four to seven ticks from 0 to at least `top`. Their distance is 1, 2 or 5 times a power of
    ten."""
    if top <= 0:
        top = 1
    step = 10 ** math.floor(math.log10(top))
    for factor in (0.1, 0.2, 0.5, 1, 2):
        if top / (step * factor) <= 6:
            step *= factor
            break
    return [step * i for i in range(math.ceil(top / step - 1e-9) + 1)]


def _label(value):
    return f"{value:,.10g}"


class _Axis:
    """Maps a value to its place between `begin` and `end` in the picture."""

    def __init__(self, low, high, begin, end, logarithmic=False):
        self._map = math.log if logarithmic else float
        self._low, self._begin = self._map(low), begin
        self._scale = (end - begin) / ((self._map(high) - self._low) or 1)

    def __call__(self, value):
        return self._begin + (self._map(value) - self._low) * self._scale


def _text(x, y, text, anchor="start", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{html.escape(text)}</text>'


def _line(kind, x1, y1, x2, y2):
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _x_ticks(xs):
    """The points' own x values if there are at most ten, else nice_ticks()."""
    return xs if len(xs) <= 10 else [x for x in nice_ticks(xs[-1]) if xs[0] <= x <= xs[-1]]


def svg(points):
    """Draws one curve, which must have at least one point. The labels are those of the first point.
    The x axis is logarithmic if the largest x is at least eight times the smallest."""
    first = points[0]
    series = {}
    for point in points:
        series.setdefault(point["series"], []).append((point["x"], point["y"]))
    xs = sorted({point["x"] for point in points})
    height = _HEIGHT + _LEGEND_LINE * len(series)
    top, bottom = _TOP + _LEGEND_LINE * len(series), height - _BOTTOM
    right = _WIDTH - _RIGHT
    y_ticks = nice_ticks(max(point["y"] for point in points))
    x_axis = _Axis(xs[0], xs[-1], _LEFT + 12, right - 12, xs[0] > 0 and xs[-1] / xs[0] >= 8)
    y_axis = _Axis(y_ticks[0], y_ticks[-1], bottom, top)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{html.escape(first['curve'])}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{height}"/>',
        _text(_LEFT, 28, first["curve"], extra=' class="title"'),
    ]
    for tick in y_ticks:
        parts.append(_line("rule", _LEFT, y_axis(tick), right, y_axis(tick)))
        parts.append(_text(_LEFT - 8, y_axis(tick) + 4, _label(tick), "end"))
    for tick in _x_ticks(xs):
        parts.append(_line("axis", x_axis(tick), bottom, x_axis(tick), bottom + 5))
        parts.append(_text(x_axis(tick), bottom + 20, _label(tick), "middle"))
    parts.append(_line("axis", _LEFT, bottom, right, bottom))
    parts.append(_line("axis", _LEFT, top, _LEFT, bottom))
    parts.append(_text((_LEFT + right) / 2, height - 14, first["x_label"], "middle"))
    middle = (top + bottom) / 2
    parts.append(_text(18, middle, first["y_label"], "middle",
                       f' transform="rotate(-90 18 {middle:.1f})"'))
    for i, (name, places) in enumerate(series.items()):
        colour, dash = _COLOURS[i % len(_COLOURS)], _DASHES[i % len(_DASHES)]
        stroke = f'stroke="{colour}" stroke-dasharray="{dash}"'
        path = " ".join(f"{x_axis(x):.1f},{y_axis(y):.1f}" for x, y in sorted(places))
        parts.append(f'<polyline class="line" {stroke} points="{path}"/>')
        for x, y in sorted(places):
            parts.append(f'<circle cx="{x_axis(x):.1f}" cy="{y_axis(y):.1f}" r="4" fill="{colour}">'
                         f"<title>{html.escape(name)}: {_label(x)}, {_label(y)}</title></circle>")
        legend_y = _TOP + _LEGEND_LINE * i
        parts.append(f'<polyline class="line" {stroke} points="{_LEFT},{legend_y} '
                     f'{_LEFT + 36},{legend_y}"/>')
        parts.append(_text(_LEFT + 46, legend_y + 4, name))
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


_BAR, _GAP, _NAMES, _VALUES = 26, 12, 210, 70  # Heights: a bar, a gap. Widths: names, values.


def bars(title, values):
    """Draws a bar for each (name, value) pair, from the top down. There must be at least one pair.
    The first bar is Systole's and has a colour of its own."""
    top = 56
    height = top + len(values) * (_BAR + _GAP) + 12
    length = _Axis(0, max(value for _, value in values), 0, _WIDTH - _NAMES - _VALUES)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{html.escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{height}"/>',
        _text(16, 30, title, extra=' class="title"'),
    ]
    for i, (name, value) in enumerate(values):
        y = top + i * (_BAR + _GAP)
        parts.append(_text(_NAMES - 10, y + 18, name, "end"))
        parts.append(f'<rect class="bar" x="{_NAMES}" y="{y}" width="{length(value):.1f}" '
                     f'height="{_BAR}" fill="{_COLOURS[0 if i == 0 else 4]}"/>')
        parts.append(_text(_NAMES + length(value) + 8, y + 18, _label(value)))
    parts.append("</svg>")
    return "\n".join(parts) + "\n"
