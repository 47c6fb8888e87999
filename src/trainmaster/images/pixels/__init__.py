"""Reading images, cutting them into tiles, calling models and merging their features.

Only this part of image jobs needs GDAL, NumPy and Shapely, a layer in Lambda (ADR 0017): code that works without images
must not import it.
"""
