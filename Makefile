# What developers do often. Everything here is a script that works without make, too.

.DEFAULT_GOAL := help
VENV := .venv/bin

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: venv
venv: ## Put the locked Python packages into .venv
	./hack/venv --dev

.PHONY: demo
demo: ## Show the two-by-two of policies, without a cluster
	./hack/demo

.PHONY: test
test: ## Everything that needs no cluster (at most 90 s)
	./hack/test --fast

.PHONY: verify
verify: ## All that CI does: the tests on a real cluster too (root, minutes)
	./hack/test

.PHONY: image-test
image-test: ## Build the image and install the chart from it on a real cluster (root, minutes)
	./hack/test --image

.PHONY: format
format: venv ## Format the code
	$(VENV)/ruff format .
	$(VENV)/ruff check --fix .

.PHONY: lint
lint: venv ## Check format, lint, types and layers
	$(VENV)/ruff format --check .
	$(VENV)/ruff check .
	$(VENV)/mypy
	$(VENV)/lint-imports --no-logo

.PHONY: proto
proto: venv ## Generate driver/_proto from proto/
	./hack/proto

.PHONY: schema
schema: venv ## Generate the schema of the chart's values
	$(VENV)/python -m hack.valuesschema

.PHONY: lock
lock: ## Write the lock files from pyproject.toml (needs uv)
	uv pip compile --universal --generate-hashes --all-extras --group dev pyproject.toml -o requirements.lock
	uv pip compile --universal --generate-hashes --extra nvml --extra otel -c requirements.lock pyproject.toml -o requirements-runtime.lock
	uv pip compile --universal --generate-hashes --group image --python-version 3.11 -c requirements.lock -o requirements-build.lock

.PHONY: cluster
cluster: ## Bring a real Kubernetes up on this machine (root)
	./hack/cluster up

.PHONY: cluster-down
cluster-down: ## Remove it, and all its traces
	./hack/cluster down
