#!/usr/bin/env bash
# Builds the site into docs/build/html, warnings as errors: docs/build_site.sh [PYTHON], one that has the extra "docs".
set -euo pipefail
cd "$(dirname "$0")"
"${1:-python}" -m sphinx -W --keep-going -q -d build/doctrees . build/html
echo "site: $(pwd)/build/html/index.html"
