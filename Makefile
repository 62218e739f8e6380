# Short names for the scripts; see CONTRIBUTING.md. The build itself is CMake's (CMakePresets.json).
.PHONY: demo test test-full bench lint format docs deps wheel

deps:
	@scripts/install-deps.sh

demo:
	@scripts/demo.sh

test: deps
	@scripts/test.sh

test-full: deps
	@scripts/test-full.sh

bench: deps
	@cmake --preset release >/dev/null
	@bench/run.sh build/release

lint: deps
	@scripts/lint.sh

format:
	@scripts/format.sh

docs:
	@scripts/docs.sh

wheel:
	@scripts/wheel.sh
