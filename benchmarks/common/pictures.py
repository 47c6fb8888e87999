"""Saves matplotlib figures as small PNG files, or as SVG. matplotlib is an optional dependency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 110
COLORS = 64
"""Colors in the palette of a PNG, which has a quarter of the size of a PNG in full color."""


@contextmanager
def drawing() -> Iterator[None]:
    """Set matplotlib to draw reproducible files, whose SVG keeps text as text."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "trainmaster", "font.size": 9}):
        yield


def save(figures: Mapping[str, Figure], directory: Path, forms: Sequence[str]) -> list[Path]:
    """Save figures by name in each form, `png` or `svg`, and return the files."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in figures.items():
        for form in forms:
            path = directory / f"{name}.{form}"
            if form == "png":
                _save_png(figure, path)
            else:
                figure.savefig(path, metadata={"Date": None})
            written.append(path)
    return written


def _save_png(figure: Figure, path: Path) -> None:
    from PIL import Image

    drawn = BytesIO()
    figure.savefig(drawn, dpi=DOTS_PER_INCH, metadata={"Software": None})
    image = Image.open(drawn).convert("RGB")
    image.quantize(COLORS, dither=Image.Dither.NONE).save(path, "png", optimize=True)
