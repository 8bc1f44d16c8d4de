# Trainyard: build, test and check. `make help` lists the targets.

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS   += --no-builtin-rules

GO        ?= go
BIN       := bin/trainyard
TOOLS     := $(CURDIR)/bin/tools
LINT      := $(TOOLS)/golangci-lint
LINT_VERSION := 2.15.0

# The root module and every nested one that exists (kube/ has its own go.mod).
MODULES := . $(patsubst %/go.mod,%,$(wildcard */go.mod))

# Modules for the page and for dashboards, which their users need not build: the bundler, tests in a browser, and tests
# with Prometheus' own parser.
PAGE_MODULES := web/bundle web/browser tools/promql

# Packages with goroutines, where the race detector can find something. The decision core is one goroutine by rule
# (internal/layertest checks it), so racing it would only cost time. Folders that do not exist yet are left out.
RACE_DIRS := api driver/local driver/drivertest host manager cli/experiment examples/trainer

# What starts the program as it is shipped, built without a tag and without the race detector: nothing else is tested in it
# by either.
SHIPPED := manager/crashtest

TESTFLAGS ?=
# Of one package: the 10 minutes of go test are too few where much else runs.
TIMEOUT   ?= 50m
FUZZTIME  ?= 10s
FUZZBUDGET ?= 0
FUZZ      ?= .
BENCH     ?= .
BENCHTIME ?= 1s
# How simulations run, by which the compiler decides what to inline in the program that users get; off = no profile. It
# is not named default.pgo: go would then compile every package twice, for the tests and for the program that they run.
PGO       ?= cmd/trainyard/simulate.pgo
PGO_OF    := Philly/(fifo|srtf|las|tiresias-las|tiresias-gittins)$$|PhillyLogged/jsonl/fifo|FiveThousand|PALRound/pal$$
CHECKS    ?= fmt vet layers lints portable lint nvml test-invariants race

# One setting everywhere, so that tests and binaries share the build cache, in every copy of the tree; only the race
# detector needs cgo.
export CGO_ENABLED := 0
PLAIN_FLAGS := $(filter-out -trimpath,$(GOFLAGS))
export GOFLAGS := $(PLAIN_FLAGS) -trimpath
# Kubernetes lies in Go's module cache, so its folder is the same for all.
KUBE_BUILD := GOFLAGS="$(PLAIN_FLAGS)" hack/controlplane/build

##@ Everyday

.PHONY: help
help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## build bin/trainyard, and bin/trainer for the examples
	$(GO) build -pgo=$(PGO) -o $(BIN) ./cmd/trainyard
	$(GO) build -o bin/trainer ./examples/trainer

.PHONY: run
run: build ## compare several systems on a bundled trace, then train ten small jobs for real on four slots
	$(BIN) simulate --trace examples/testbed.csv --cluster 15x4 \
		--system fifo,fifo-skip,srtf,las,tiresias-las,tiresias-gittins --report bin/compare.html
	@rm -rf bin/run.state
	$(BIN) run examples/jobs.yaml --slots 4 --state bin/run.state --system pollux --set '*.interval=1' --set '*.min_run=0' \
		--set '*.restart_overhead=0.3' --set '*.horizon=10' --report bin/run.html
	@echo "open in a browser: bin/compare.html bin/run.html"

.PHONY: trust
trust: build ## show on real processes what README promises: kills, a full disk, a hostile job, preemptions
	$(GO) build -o bin/trust ./tools/trust
	bin/trust -bin bin -log bin/trust.jsonl

.PHONY: worth
worth: build ## show what worth decides: on the grounds of others, on a trace, and on ten real jobs (minutes of CPU)
	@echo '== the half of all grounds for choosing, three seeds (traces: TRAINYARD_DATA, else what needs none)'
	$(BIN) experiment grounds --seeds 3
	@rm -rf bin/worth.state bin/worth && mkdir -p bin/worth
	@echo '== a trace on two types of GPU; the reasons in its log; every decision once more'
	$(BIN) simulate --trace examples/testbed.csv --cluster examples/mixed.yaml --system worth,tiresias-las \
		--events-out bin/worth/log.jsonl
	@for code in started preempted; do grep -m 1 "\"code\":\"$$code\"" bin/worth/log.worth.jsonl; done
	$(BIN) replay bin/worth/log.worth.jsonl
	@echo '== ten real jobs on four slots, and what others would have made of them'
	@$(BIN) run examples/worth.yaml --slots 4 --state bin/worth.state --system worth --set '*.min_run=0' \
		--events-out bin/worth/live.jsonl & run=$$!; sleep 6; $(BIN) why wide --state bin/worth.state || true; wait $$run
	$(BIN) whatif --log bin/worth/live.jsonl --system tiresias-las,elastic

.PHONY: daily
daily: build ## a day of a user in two minutes: torchrun, sbatch, a terminal, a training that is stopped (needs PyTorch)
	@rm -rf bin/daily
	sh examples/daily/daily.sh bin bin/daily

.PHONY: test-slurm
test-slurm: ## play the scripts of cmd/trainyard/testdata/slurm under a real Slurm, and record what it does (needs root and slurm-wlm)
	@dir=$$(mktemp -d); trap 'hack/slurm/start $$dir stop' EXIT; export $$(hack/slurm/start $$dir); \
	$(GO) test ./cmd/trainyard -count=1 -timeout $(TIMEOUT) -run TestSlurmsPlays -record-slurm
	@git diff --stat -- cmd/trainyard/testdata/slurm

.PHONY: test-frameworks
test-frameworks: ## run jobs by frameworks whose sources are in FRAMEWORKS=DIR (submitit); what is absent is "not run"
	@TRAINYARD_FRAMEWORKS="$(abspath $(FRAMEWORKS))" $(GO) test ./python -tags frameworks -count=1 -v \
		-timeout $(TIMEOUT) -run '^TestFrameworks$$'

.PHONY: test
test: ## run the tests (TESTFLAGS=...)
	@for m in $(MODULES); do (cd "$$m" && $(GO) test -timeout $(TIMEOUT) $(TESTFLAGS) ./...); done
	@echo "left out: tests of reports in a browser; make test-browser runs them where chromium is" >&2
	@if [ -z "$${TRAINYARD_KUBE_BINS:-}" ] && [ ! -e bin/kube/current ]; then \
		echo "left out: tests on a real Kubernetes control plane; make kube-bins builds one (13 minutes of CPU), make test-kube runs them" >&2; \
	elif [ "$$(id -u)" != 0 ] || ! command -v runc >/dev/null; then \
		echo "left out: tests on a real Kubernetes node, which need root and runc; make test-kube-node runs them" >&2; \
	fi

.PHONY: fast
fast: ## what changed, and what imports it, within minutes (BASE=commit)
	@.ci/run fast

.PHONY: check
check: ## run every gate, cheapest first, and print the time of each (CHECKS=...)
	@times=; \
	for c in $(CHECKS); do \
		start=$$SECONDS; \
		echo "== $$c"; \
		$(MAKE) --no-print-directory "$$c" || { echo "== $$c failed after $$((SECONDS - start)) s"; exit 1; }; \
		times="$$times $$c $$((SECONDS - start)) s;"; \
	done; \
	echo "== check passed:$${times%;}"

##@ Single gates

.PHONY: fmt
fmt: ## fail when a file is not formatted by gofmt
	@list=$$(find . \( -name .git -o -name node_modules -o -path ./bin \) -prune -o -name '*.go' -print0 | xargs -0 -r gofmt -l); \
	if [ -n "$$list" ]; then echo "not formatted; run gofmt -w:"; echo "$$list"; exit 1; fi

.PHONY: vet
vet: ## go vet
	@for m in $(MODULES) $(PAGE_MODULES); do (cd "$$m" && $(GO) vet ./...); done

.PHONY: layers
layers: ## check the table of layers and the rules of the pure packages
	@$(GO) test ./internal/layertest

# What reaches a host by a context is used on laptops, too.
.PHONY: portable
portable: ## build the program for every system and processor that it is for
	@for os in linux darwin; do for arch in amd64 arm64; do \
		echo "$$os/$$arch"; GOOS=$$os GOARCH=$$arch $(GO) build -o /dev/null ./cmd/trainyard || exit 1; done; done

.PHONY: lints
lints: ## check width, complexity, sizes, words, names, dead and duplicate code (internal/lint)
	@$(GO) test ./internal/lint

.PHONY: lint
lint: tools ## golangci-lint
	@for m in $(MODULES) $(PAGE_MODULES); do (cd "$$m" && $(LINT) run --config "$(CURDIR)/.golangci.yml" ./...); done

# The tag changes the engine alone, so only tests with an engine in them differ by it.
.PHONY: test-invariants
test-invariants: ## run the tests that have an engine in them with its costly checks (-tags invariants), but those of race
	@all=$$($(GO) list -test -f '{{.ImportPath}} {{join .Deps " "}}' ./... | \
		awk '/^[^ ]*\.test .*\/engine( |$$)/ { sub(/\.test .*/, ""); print }'); \
	raced=$$($(GO) list $(RACE_DIRS:%=./%/...)); \
	$(GO) test -tags invariants -timeout $(TIMEOUT) $(TESTFLAGS) $$(grep -vxF "$$raced" <<<"$$all")

.PHONY: race
race: export CGO_ENABLED := 1
race: ## run the tests of the concurrent packages under the race detector, with -tags invariants
	@raced=$$($(GO) list $(RACE_DIRS:%=./%/...) | grep -v $(SHIPPED:%=-e '/%$$')); \
	$(GO) test -race -tags invariants -timeout $(TIMEOUT) $(TESTFLAGS) $$raced

.PHONY: race-kube
race-kube: export CGO_ENABLED := 1
race-kube: ## the same for kube/, without a control plane (6 minutes of CPU, half of them to build)
	@cd kube && env -u TRAINYARD_REQUIRE_KUBE TRAINYARD_KUBE_BINS=/none $(GO) test -race -timeout $(TIMEOUT) $(TESTFLAGS) ./driver ./controller ./logs

.PHONY: nvml
nvml: export CGO_ENABLED := 1
nvml: ## vet and test the back-end of NVIDIA's library, which needs a C compiler
	@$(GO) vet -tags nvml ./driver/local/device ./cmd/trainyard && $(GO) test -tags nvml $(TESTFLAGS) ./driver/local/device

##@ Longer work

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME each, or as many as fit into FUZZBUDGET seconds (FUZZ=regexp)
	@FUZZTIME=$(FUZZTIME) FUZZBUDGET=$(FUZZBUDGET) hack/fuzz '$(FUZZ)'

.PHONY: mutants
mutants: ## plant faults one at a time, and see that tests find them (MUTANTS='-budget 4m -run REGEXP')
	@$(GO) build -o bin/tools/mutants ./tools/mutants
	@bin/tools/mutants $(MUTANTS)

.PHONY: kube-bins
kube-bins: ## build Kubernetes for the tests in bin/kube, from source, if this version is not there (13 minutes of CPU)
	@$(KUBE_BUILD) control node

.PHONY: kube-yard
kube-yard: ## measure a leader and its follower next to their bars (YARD='-nodes 6250 -jobs 100000'; made once, copied then)
	@$(KUBE_BUILD) control
	@cd kube && $(GO) test -timeout 6h -run '^$$' -bench '^BenchmarkYard$$' -benchtime 1x ./e2e -args $(or $(YARD),-nodes 500 -jobs 5000)

.PHONY: test-kube
test-kube: export TRAINYARD_REQUIRE_KUBE := 1
test-kube: ## run the tests of kube/ on a real control plane, built if need be
	@$(KUBE_BUILD) control
	@cd kube && $(GO) test -timeout $(TIMEOUT) $(TESTFLAGS) ./...

.PHONY: test-kube-node
test-kube-node: export TRAINYARD_REQUIRE_KUBE_NODE := 1
test-kube-node: ## train on real Kubernetes nodes: kubelet, containerd, runc, GPUs that are pretended (root; needs runc)
	@$(KUBE_BUILD) control node
	@cd kube && $(GO) test -timeout $(TIMEOUT) $(TESTFLAGS) -run '^TestReal' ./internal/realnode ./e2e

.PHONY: wheel
wheel: ## build the Python package with the program inside, in bin/wheel (needs hatchling for /usr/bin/python3)
	@PGO=$(PGO) hack/wheel bin/wheel

.PHONY: web
web: ## bundle the page of reports into web/dist, which is committed (needs npm)
	@cd web && npm ci --ignore-scripts --no-audit --no-fund && npx --no-install tsc --noEmit
	@cd web/bundle && $(GO) run .

.PHONY: page
page: web ## fail when web/dist is not what the sources of the page give
	@git diff --exit-code --stat -- web/dist && test -z "$$(git ls-files --others --exclude-standard web/dist)" || \
		{ echo "web/dist is not what web/page gives: run make web, and commit it"; exit 1; }

.PHONY: test-browser
test-browser: ## open reports in a real Chromium; screenshots stay in bin/shots
	@cd web/browser && $(GO) test -timeout $(TIMEOUT) $(TESTFLAGS) ./...

.PHONY: test-dashboards
test-dashboards: ## parse docs/grafana as Prometheus does; look for its metrics in a real manager
	@cd tools/promql && $(GO) test -timeout $(TIMEOUT) $(TESTFLAGS) ./...

.PHONY: handover
handover: ## hand running jobs over from the program of BASE=COMMIT to this one, and back
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	git archive "$(BASE)" | tar -x -C "$$dir" && (cd "$$dir" && $(GO) build -o bin/old ./cmd/trainyard) && \
	TRAINYARD_OLD_BINARY="$$dir/bin/old" $(GO) test -count 1 -tags handover -run '^TestHandBack$$' $(TESTFLAGS) ./internal/freeze

.PHONY: handover-kube
handover-kube: ## hand the jobs of a cluster over from the controller of BASE=COMMIT to this one, and back
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	git archive "$(BASE)" | tar -x -C "$$dir" && (cd "$$dir/kube" && $(GO) build -o ../bin/old ./cmd/trainyard-kube) && \
	(cd kube && TRAINYARD_OLD_KUBE="$$dir/bin/old" $(GO) test -count 1 -tags handover -run '^TestHandBack$$' $(TESTFLAGS) ./e2e)

.PHONY: reference
reference: export TRAINYARD_REFERENCE := write
reference: ## write docs/reference from what the code declares, and the indexes below docs/inside
	@$(GO) test -count 1 -run '^TestReference' ./api ./api/server ./cmd/trainyard ./internal/lint
	@cd kube && $(GO) test -count 1 -run '^TestReference' ./cmd/trainyard-kube

.PHONY: bench
bench: ## run the benchmarks (BENCH=regexp BENCHTIME=1s); compare two runs with benchstat
	@$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem ./...

.PHONY: bench-ratio
bench-ratio: ## compare simulations with a bare heap and Lean, by bench/bounds.yaml (BENCH=workload for one)
	@$(GO) test -pgo=$(PGO) ./bench -run '^$$' -bench 'Ratio/^$(if $(filter .,$(BENCH)),,$(BENCH)$$)' -benchtime 1x -timeout 60m

.PHONY: pgo
pgo: ## profile simulations for PGO, which is committed: builds of the program go by it (2 minutes of CPU)
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	$(GO) test ./bench -run '^$$' -bench '$(PGO_OF)' -benchtime 2x -cpuprofile "$$dir/cpu" -o "$$dir/bench.test" && \
	$(GO) tool pprof -proto -output $(PGO) "$$dir/cpu"

.PHONY: tools
tools: ## install the linter in bin/tools, if this version is not there
	@if [ "$$($(LINT) version --short 2>/dev/null || true)" != "$(LINT_VERSION)" ]; then \
		echo "installing golangci-lint v$(LINT_VERSION) in bin/tools (about two minutes of CPU)"; \
		GOBIN="$(TOOLS)" GOFLAGS= $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$(LINT_VERSION); \
	fi

.PHONY: clean
clean: ## remove what was built; the linter and Kubernetes stay in bin/tools and bin/kube
	rm -rf $(BIN) bin/trainer bin/run.state bin/worth bin/worth.state bin/compare.html bin/run.html bin/shots bin/browser-trainyard dist
	find . -name .git -prune -o \( -name '*.test' -o -name '*.prof' \) -type f -exec rm -f {} +
