"""Plug-in points of a deployment: sensor models of its own, and the heights of the ground (docs/how-to/image-jobs.md).

A plug-in is Python code in a layer that the deployment names. It runs in the functions that read pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from rasterio.io import DatasetReader

from trainmaster.domain.errors import InvalidRequest, TrainmasterError, Unavailable
from trainmaster.domain.text import one_line

Numbers = NDArray[np.float64]
_HINT = "Add its package to the layer ImagePluginLayerArn, or remove it from the parameters of the stack of image jobs."


class ImageDescription:
    """Describes an image to a plug-in.

    Args:
        image: open image; nothing of it may be used later.
    """

    def __init__(self, image: DatasetReader) -> None:
        self._image = image
        self.format = str(image.driver)
        self.width, self.height = int(image.width), int(image.height)

    def metadata(self, domain: str = "") -> dict[str, str]:
        """Return GDAL's metadata of a domain, such as `TRE`, `xml:TRE`, `xml:DES` or `NITF_METADATA`."""
        found = self._image.tags(ns=domain) if domain else self._image.tags()
        return {str(key): str(value) for key, value in found.items()}


class SensorModel(Protocol):
    """Positions of an image's pixels on earth; calls come from several threads.

    Image coordinates are pixels from the upper left corner of the first pixel, whose center is (0.5, 0.5). Longitudes
    and latitudes are degrees (WGS 84), heights are metres above its ellipsoid. NaN means that there is no such point.
    """

    @property
    def reference_height(self) -> float:
        """The height that is used where no elevation is known."""
        ...

    def to_ground(self, columns: Numbers, rows: Numbers, heights: Numbers) -> tuple[Numbers, Numbers]:
        """Return longitudes and latitudes of pixels that show the ground at these heights."""
        ...

    def to_image(self, longitudes: Numbers, latitudes: Numbers, heights: Numbers) -> tuple[Numbers, Numbers]:
        """Return the columns and rows in which these places appear."""
        ...


class Elevation(Protocol):
    """Heights of the ground; calls come from several threads."""

    def heights(self, longitudes: Numbers, latitudes: Numbers) -> Numbers:
        """Return metres above the WGS 84 ellipsoid at places in degrees; NaN where they are unknown."""
        ...


SensorModelFactory = Callable[[ImageDescription], "SensorModel | None"]
"""Returns the sensor model of an image; None for an image that it is not made for."""


@dataclass(frozen=True, slots=True)
class Sensors:
    """The plug-ins of a deployment; none by default.

    Attributes:
        factories: of sensor models, by name; the first that returns a model decides.
        elevation: heights of the ground; None to use each sensor model's own reference height.
    """

    factories: Mapping[str, SensorModelFactory] = field(default_factory=dict)
    elevation: Elevation | None = None

    def model_of(self, image: DatasetReader) -> tuple[str, SensorModel] | None:
        """Return the plug-in's sensor model of an image with its name; None if no plug-in has one.

        Raises `InvalidRequest` if a plug-in fails: wrong places would be worse.
        """
        for name, factory in self.factories.items():
            with calling(name):
                model = factory(ImageDescription(image))
            if model is not None:
                return name, model
        return None


NO_SENSORS = Sensors()


@contextmanager
def calling(name: str) -> Iterator[None]:
    """Raise `InvalidRequest` with the name of a plug-in if it fails."""
    try:
        yield
    except TrainmasterError:
        raise
    except Exception as error:
        cause = one_line(f"{type(error).__name__}: {error}")[:500]
        raise InvalidRequest(f"the plug-in {name} failed at this image: {cause}", field="imageUrls") from error


def load_factories(names: Sequence[str]) -> dict[str, SensorModelFactory]:
    """Return the factories of sensor models by name. Raises `Unavailable` for one that cannot be loaded."""
    return {name: load(name) for name in names}


def load(name: str) -> Any:
    """Return the function of a plug-in, `module:function`. Raises `Unavailable` if there is none."""
    module, _, path = name.partition(":")
    try:
        found: Any = import_module(module)
        for attribute in path.split("."):
            found = getattr(found, attribute)
    except Exception as error:
        cause = one_line(f"{type(error).__name__}: {error}")[:500]
        raise Unavailable(f"The plug-in {name} cannot be loaded: {cause}. {_HINT}") from error
    if not callable(found):
        raise Unavailable(f"The plug-in {name} is no function. {_HINT}")
    return found
