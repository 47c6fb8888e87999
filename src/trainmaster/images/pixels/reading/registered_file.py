"""Files of Python under names that GDAL opens; the only module that uses a private class of rasterio.

rasterio's public argument `opener=` keeps its registry per thread, so a handle that another thread closes is not found
in it; it also writes to GDAL's table of file systems for each handle, while other threads read it. `FilePathBase`, from
the private module `rasterio._filepath`, does neither. rasterio may change it in a minor release, so the dependency is
pinned below 1.5; run the tests of images behind HTTP before raising the pin.
"""

from __future__ import annotations

from rasterio.io import FilePathBase


class RegisteredFile(FilePathBase):  # type: ignore[misc]
    """A file under a name (`name`) that GDAL opens, with a new handle for each open."""
