#!/bin/bash
set -euo pipefail

echo "base"
