"""The commands, one module each; `sifwright.cli.registry` lists this folder and loads them."""
