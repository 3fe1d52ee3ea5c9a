#!/bin/bash
set -euo pipefail

echo "tool"
