"""Images: their headers, their pixels cut into tiles, and what models find in them.

The part of image jobs that needs GDAL, NumPy and Shapely, which come to Lambda as a layer (ADR 0017): nothing that
works without images may import it.
"""
