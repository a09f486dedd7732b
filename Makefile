# `make` builds, `make run` serves, `make check` is all that CI runs. Variables of the environment and of the command line
# (make run KB_ADDR=:9090) reach every command.
SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
.NOTPARALLEL:

PYTHON ?= python3
FUZZTIME ?= 30s
COUNT ?= 1
BASE ?= main
SETS ?=
CASES ?=
CONTRACT ?=
BIG ?=
ONLY ?=
TESTFLAGS ?=

TOOLS = $(shell $(PYTHON) scripts/setup.py where)/tools
SQLC = $(TOOLS)/sqlc-1.31.1
LINTER = $(TOOLS)/golangci-lint-v2.15.0
VULN = $(TOOLS)/govulncheck-v1.9.0

# The version is in VERSION; a stamp would only make the build depend on git and on who owns the clone.
GO_BUILD = CGO_ENABLED=1 go build -trimpath -buildvcs=false

.PHONY: help build runtime setup setup/models tools run bin/withdb test test/race fuzz eval cases contract bench bench/compare lint vet/sql vuln \
	generate verify check db/up db/reset clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z\/]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/kb
	$(GO_BUILD) -o bin/kb ./cmd/kb

runtime:
	@$(PYTHON) scripts/setup.py run

setup: runtime build ## bring what a server needs: PostgreSQL, ONNX Runtime, the model
	bin/kb models pull

tools: ## bring what a developer needs besides: sqlc, golangci-lint, govulncheck
	@$(PYTHON) scripts/setup.py tools

run: export KB_DATA_DIR ?= $(CURDIR)/.data
run: setup ## serve, with data in ./.data unless KB_DATA_DIR names another folder
	exec bin/kb serve

bin/withdb: runtime
	$(GO_BUILD) -o $@ ./db/dbtest/withdb

setup/models: setup # the models that tests change between, and what stands in for a reranker
	bin/kb models pull bge-small-en-v1.5
	bin/kb models pull bge-small-zh-v1.5
	bin/kb models pull e5-small-v2
	KB_MODEL_PRECISION=fp32 bin/kb models pull all-MiniLM-L6-v2
	@$(PYTHON) scripts/setup.py stand-in

test: setup/models bin/withdb ## run all tests
	bin/withdb go test $(TESTFLAGS) ./...

test/race: setup/models bin/withdb ## run all tests under the race detector
	bin/withdb go test -race $(TESTFLAGS) ./...

fuzz: setup/models bin/withdb ## run each fuzz test for FUZZTIME (30s)
	bin/withdb scripts/fuzz.sh $(FUZZTIME)

eval: export KB_DATA_DIR ?= $(CURDIR)/.data/eval
eval: setup ## measure search quality on the judged sets SETS="DIR..."
	bin/kb eval $(SETS)

cases: setup ## try public failure cases, whose generators are in CASES=DIR, on a server (BIG=1: large files; ONLY=PDF,JOB-01)
	@$(PYTHON) scripts/cases.py $(if $(BIG),--big) $(if $(ONLY),--only $(ONLY)) bin/kb "$(CASES)"

contract: setup/models bin/withdb ## check answers against the knowledge API's own OpenAPI document CONTRACT=FILE
	KB_KNOWLEDGE_CONTRACT="$(abspath $(CONTRACT))" bin/withdb go test -count 1 -run TestKnowledgeContract -v ./api

bench: setup/models bin/withdb ## run the benchmarks COUNT times (1)
	bin/withdb go test -run '^$$' -bench . -benchmem -count $(COUNT) ./...

bench/compare: setup/models bin/withdb ## compare ten runs of the benchmarks with those of the commit BASE (main)
	bin/withdb scripts/bench-compare.sh $(BASE)

lint: tools ## find mistakes, wrong imports and unformatted code
	$(LINTER) run ./...

vet/sql: tools bin/withdb ## prepare every query against a migrated database
	bin/withdb -migrated $(SQLC) vet

vuln: tools ## look for known vulnerabilities in what kb calls
	scripts/vuln.sh $(VULN)

generate: tools ## write the generated files anew
	$(SQLC) generate
	gofmt -w db/*.gen.go
	$(GO_BUILD) -o bin/kb ./cmd/kb
	bin/kb configdoc >docs/config.md
	mkdir -p openapi
	bin/kb openapi openapi/

verify: ## fail when generated files, or the places that name the version, are out of date
	@MAKE="$(MAKE)" PYTHON="$(PYTHON)" scripts/verify.sh

check: lint verify vet/sql test/race vuln ## all that CI runs

db/up: bin/withdb ## keep a migrated scratch database until Ctrl-C, and print its URL
	bin/withdb -migrated sh -c 'echo "$$KB_VET_DATABASE_URL"; while sleep 3600; do :; done'

db/reset: ## delete what make run stored in ./.data
	rm -rf .data

clean: ## delete what was built
	rm -rf bin
