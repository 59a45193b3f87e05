"""Charts as inline SVG, drawn from numbers alone. Colours are the style sheet's, so they follow dark mode."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from orch.sweeps.selection import LEARNED

Point = tuple[float, float]
NUM_COLOURS = 8
"""Series beyond these repeat the colours of the style sheet, `.c0` and so on."""


@dataclass(frozen=True, slots=True)
class Scale:
    """A mapping of values to places on the page, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log10(low), math.log10(high), math.log10(max(value, low))
        share = 0.5 if high == low else (value - low) / (high - low)
        return round(self.start + (self.end - self.start) * min(1.0, max(0.0, share)), 1)

    @property
    def ticks(self) -> list[float]:
        """A few round values in the range; its ends, where a logarithmic one has fewer than two powers of ten."""
        if self.logarithmic:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            stride = max(1, -(-(last - first) // 4))
            powers = [10.0**power for power in range(first, last + 1, stride)]
            return powers if len(powers) > 1 else [float(f"{end:.2g}") for end in (self.low, self.high)]
        if self.high == self.low:
            return [self.low]
        rough = (self.high - self.low) / 4
        power = 10 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        return [number * step for number in range(first, math.floor(self.high / step + 1e-9) + 1)]


def sparkline(points: Sequence[tuple[float, float | None, float | None]], steps: float) -> Markup:
    """Draw the accuracy and, more faintly, the loss of a running trial, on an axis of all steps that it may take.

    `points` have a step, a loss and an accuracy. The dashed line is the accuracy that counts as learned.
    """
    width, height = 240.0, 56.0
    across = Scale(0, max(steps, 1), 2, width - 2)
    up = Scale(-0.05, 1.05, height - 2, 2)
    losses = [loss for _, loss, _ in points if loss is not None and loss > 0]
    down = Scale(min(losses, default=1) * 0.9, max(losses, default=1) * 1.1, height - 2, 4, logarithmic=True)
    loss_path = _path([(across.place(step), down.place(loss)) for step, loss, _ in points if loss is not None])
    accuracies = [(across.place(step), up.place(value)) for step, _, value in points if value is not None]
    level = up.place(LEARNED)
    parts = [
        Markup('<path class="level" d="M2 {0}H{1}"/>').format(level, width - 2),
        Markup('<path class="loss" d="{}"/>').format(loss_path),
        Markup('<path class="line c0" d="{}"/>').format(_path(accuracies)),
    ]
    if accuracies:
        # A line of no length is a dot that stays round when the drawing is stretched.
        parts.append(Markup('<path class="line tip c0" d="M{:g} {:g}h0"/>').format(*accuracies[-1]))
    label = f"accuracy and loss by step, {len(points)} validations"
    return _svg("spark", width, height, parts, label, stretched=True)


def line_chart(
    series: Mapping[str, Sequence[Point]],
    x_label: str,
    y_label: str,
    y_range: tuple[float, float] | None = None,
    logarithmic: bool = False,
    x_range: tuple[float, float] | None = None,
    level: float | None = None,
) -> Markup:
    """Draw one line for each series. With `logarithmic`, values of zero or less are left out."""
    if logarithmic:
        series = {name: [point for point in points if point[1] > 0] for name, points in series.items()}
    points = [point for line in series.values() for point in line]
    if not points:
        return Markup("")
    width, height, left, bottom, right, top = 640.0, 260.0, 52.0, 40.0, 28.0, 12.0
    xs, ys = [x for x, _ in points], [y for _, y in points]
    across = Scale(*(x_range or (min(xs), max(xs))), left, width - right)
    up = Scale(*(y_range or (min(ys), max(ys))), height - bottom, top, logarithmic)
    parts = [*_axes(across, up, width, height, left, bottom, right, x_label, y_label)]
    if level is not None:
        parts.append(Markup('<path class="level" d="M{} {}H{}"/>').format(left, up.place(level), width - right))
    for number, (name, line) in enumerate(series.items()):
        places = [(across.place(x), up.place(y)) for x, y in line]
        colour = f"c{number % NUM_COLOURS}"
        parts.append(
            Markup('<path class="line {}" d="{}"><title>{}</title></path>').format(colour, _path(places), name)
        )
        if len(places) <= 60:
            parts += [
                Markup('<circle class="dot {}" cx="{}" cy="{}" r="2.6"><title>{}{}, {}</title></circle>').format(
                    colour, *place, f"{name}: " if len(series) > 1 else "", number_text(x), number_text(y)
                )
                for place, (x, y) in zip(places, line, strict=True)
            ]
    drawing = _svg("chart", width, height, parts, f"{y_label} by {x_label}")
    return _legend(series) + drawing if len(series) > 1 else drawing


def bar_chart(bars: Sequence[tuple[str, float]], value_label: str) -> Markup:
    """Draw a horizontal bar for each value, with its name on the left and the value at its end."""
    row, left, width = 24.0, 210.0, 640.0
    height = row * len(bars) + 8
    values = [value for _, value in bars]
    across = Scale(min(0.0, *values), max(0.0, *values), left, width - 70)
    zero = across.place(0.0)
    parts = []
    for number, (name, value) in enumerate(bars):
        top, end = 4 + row * number, across.place(value)
        shown = name if len(name) <= 30 else f"{name[:29]}…"
        parts.append(
            Markup(
                '<g><title>{}: {}</title><text class="name" x="{}" y="{}">{}</text>'
                '<rect class="block" x="{}" y="{}" width="{}" height="{}" rx="3"/><text x="{}" y="{}">{}</text></g>'
            ).format(
                *(name, number_text(value), left - 8, top + row / 2 + 4, shown),
                *(min(zero, end), top + 3, round(max(1.0, abs(end - zero)), 1), row - 6),
                *(max(zero, end) + 6, top + row / 2 + 4, number_text(value)),
            )
        )
    return _svg("chart", width, height, parts, f"{value_label} by row")


def number_text(value: float) -> str:
    """Format a number in few characters."""
    if value and (abs(value) < 1e-3 or abs(value) >= 1e6):
        return f"{value:.1e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def _axes(
    across: Scale, up: Scale, width: float, height: float, left: float, bottom: float, right: float, *labels: str
) -> Iterable[Markup]:
    x_label, y_label = labels
    for tick in up.ticks:
        y = up.place(tick)
        yield Markup('<path class="rule" d="M{} {}H{}"/>').format(left, y, width - right)
        yield Markup('<text class="name" x="{}" y="{}">{}</text>').format(left - 6, y + 4, number_text(tick))
    for tick in across.ticks:
        x = across.place(tick)
        yield Markup('<text class="middle" x="{}" y="{}">{}</text>').format(x, height - bottom + 16, number_text(tick))
    yield Markup('<text class="middle soft" x="{}" y="{}">{}</text>').format((left + width) / 2, height - 6, x_label)
    yield Markup('<text class="middle soft" transform="translate(12 {}) rotate(-90)">{}</text>').format(
        (height - bottom) / 2, y_label
    )


def _legend(series: Iterable[str]) -> Markup:
    entries = [
        Markup(
            '<li><svg viewBox="0 0 14 8" width="14" height="8"><path class="line c{}" d="M0 4H14"/></svg>{}</li>'
        ).format(number % NUM_COLOURS, name)
        for number, name in enumerate(series)
    ]
    return Markup('<ul class="legend">{}</ul>').format(Markup("").join(entries))


def _svg(
    kind: str, width: float, height: float, parts: Iterable[Markup], label: str, stretched: bool = False
) -> Markup:
    ratio = Markup(' preserveAspectRatio="none"') if stretched else ""
    return Markup('<svg class="{}" viewBox="0 0 {:g} {:g}"{} role="img" aria-label="{}">{}</svg>').format(
        kind, width, height, ratio, label, Markup("").join(parts)
    )


def _path(places: Sequence[Point]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in places) if places else ""
