"""sifwright: compose, build and prove PyTorch container images for supercomputers."""

__version__ = "0.1.0"
