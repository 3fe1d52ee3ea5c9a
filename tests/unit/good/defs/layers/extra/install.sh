#!/bin/bash
set -euo pipefail

echo "extra"
