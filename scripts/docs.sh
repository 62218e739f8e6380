#!/usr/bin/env bash
# The documentation, with its links checked: `make docs`. Pages by MkDocs into build/site, with the
# Python reference out of docstrings; the C++ reference by Doxygen into build/docs where that is installed.
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

venv=build/venv-docs
if [ ! -x "$venv/bin/mkdocs" ]; then
  /usr/bin/python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check mkdocs==1.6.1 mkdocstrings==1.0.8 mkdocstrings-python==2.0.11
fi
"$venv/bin/mkdocs" build --quiet --strict
echo "docs: open build/site/index.html"

if command -v doxygen >/dev/null 2>&1; then
  mkdir -p build/docs
  doxygen docs/Doxyfile
  echo "docs: open build/docs/html/index.html"
else
  echo "docs: without the C++ reference: apt-get install doxygen" >&2
fi
