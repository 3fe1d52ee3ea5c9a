#!/bin/bash
# Make the folder of the constraint file that later layers extend.
set -euo pipefail

mkdir -p "$INSTALL_PREFIX/sifwright"
