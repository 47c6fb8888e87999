"""Images: headers, windows of pixels, stretch, georeference, encoding of tiles."""
