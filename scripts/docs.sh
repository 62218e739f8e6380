#!/usr/bin/env bash
# Reference pages of the public headers, by Doxygen, into build/docs: `make docs`.
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
if ! command -v doxygen >/dev/null 2>&1; then
  echo "docs: doxygen is missing: apt-get install doxygen" >&2
  exit 1
fi
mkdir -p build/docs
doxygen docs/Doxyfile
echo "docs: open build/docs/html/index.html"
