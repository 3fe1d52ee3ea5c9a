"""An existing recipe, a Dockerfile or a definition file, as an image with layers."""
