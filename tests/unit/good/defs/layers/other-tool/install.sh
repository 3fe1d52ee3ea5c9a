#!/bin/bash
set -euo pipefail

echo "other-tool"
