#!/bin/bash
set -euo pipefail

echo "other-base"
