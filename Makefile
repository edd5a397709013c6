# Every habit of this project: `make help`.
PYTHON := .venv/bin/python
PYTEST := $(PYTHON) -m pytest
SOURCES := relayctl transceiver signaling tests

.DEFAULT_GOAL := help
.PHONY: help setup setup-bench up down demo figures bench bench-media bench-signaling conversations siege chaos soak fuzz test-kernels test-interop test lint format test-unit test-transceiver test-kernel test-hostile test-path test-fleet test-recovery test-resume test-lab test-browser lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install everything (Debian packages as root, .venv); safe to repeat
	@deploy/setup.sh dev

setup-bench:
	@deploy/setup.sh bench

# Some shells export HOST as the machine's name; only `make up HOST=...` means ours.
UP_HOST := $(if $(filter command\ line,$(origin HOST)),--host $(HOST))

up: setup ## talk to it: services stay up, open http://localhost:8080 (PORT=, BACKEND=echo, HOST=<address> adds https)
	@$(PYTHON) -m tests.lab.up $(if $(PORT),--port $(PORT)) $(UP_HOST) $(if $(BACKEND),--backend $(BACKEND))

down: ## stop what `make up` started
	@if [ -x $(PYTHON) ]; then $(PYTHON) -m tests.lab.down; else echo "nothing was up"; fi

demo: setup ## watch it: two calls of real speech, a table and build/demo/report.json (about a minute; DEMO_SECONDS=20 per call)
	@$(PYTHON) -m tests.demo.run

figures: setup ## measure: address moves, losses, restarts, kills; build/figures/report.json (10 minutes)
	@$(PYTHON) -m tests.figures.run

bench: setup-bench ## measure: rates, latency and cost against peers, on a quiet machine; build/bench/report.json, docs/bench
	@$(PYTHON) -m tests.bench.run $(if $(ONLY),--only $(ONLY))

bench-media: setup-bench ## measure: calls per core, sound under loss, set-ups, memory, beside aiortc and Pion; build/bench-media/report.json, docs/bench-media
	@$(PYTHON) -m tests.bench_media.run $(if $(ONLY),--only $(ONLY))

siege: setup ## measure: floods, spoofing, takeover, replacement under load; build/siege/report.json
	@$(PYTHON) -m tests.siege.run $(if $(ONLY),--only $(ONLY))

conversations: setup ## measure: scripted conversations, barge-in, pauses, positions, dying backends; build/conversations/report.json (12 minutes)
	@$(PYTHON) -m tests.conversations.run $(if $(ONLY),--only $(ONLY))

bench-signaling: setup ## measure: from an offer to sound, offers per second, abandoned and malformed offers; build/bench-signaling/report.json, docs/bench-signaling
	@$(PYTHON) -m tests.bench_signaling.run $(if $(ONLY),--only $(ONLY))

fuzz: setup ## the program against the model, FRAMES=1000000 SEED=; then the codecs, SECONDS=60 each; build/fuzz/report.json
	@$(PYTHON) -m tests.fuzz.run $(if $(FRAMES),--frames $(FRAMES)) $(if $(SEED),--seed $(SEED)) $(if $(SECONDS),--seconds $(SECONDS))

chaos: setup ## break it: every fault beside a control run, with live calls and browsers; build/chaos/report.json, docs/chaos (15 minutes; steps the clock of this machine unless CLOCK=keep)
	@$(PYTHON) -m tests.chaos.run $(ONLY)

soak: setup ## wear it: 20 minutes of calls and random faults; build/soak/report.json and a plot (SECONDS=)
	@$(PYTHON) -m tests.soak.run $(if $(SECONDS),--seconds $(SECONDS))

test-kernels: setup ## load, attach and test on stock Debian kernels in QEMU; build/test-kernels/report.json
	@$(PYTHON) -m tests.kernels.run $(if $(KERNEL),--kernel $(KERNEL))

test-interop: setup ## real clients, unchanged, against the services; build/test-interop/report.json, docs/interop (10 minutes)
	@$(PYTHON) -m tests.interop.run $(if $(ONLY),--only $(ONLY))

test: setup lint ## trust it: everything below
	$(MAKE) -j5 --output-sync=target test-hostile test-path test-transceiver test-unit test-kernel # at once: none measures time
	$(MAKE) -j5 --output-sync=target test-lab test-browser test-fleet test-recovery test-resume # in real time, and mostly waiting

lint: setup ## style, types, import directions
	$(PYTHON) -m ruff check $(SOURCES)
	$(PYTHON) -m ruff format --check $(SOURCES)
	$(PYTHON) -m mypy
	.venv/bin/lint-imports
	clang-format --dry-run -Werror bpf/*.c bpf/*.h

format: ## let the formatters have their way
	$(PYTHON) -m ruff check --fix $(SOURCES)
	$(PYTHON) -m ruff format $(SOURCES)
	clang-format -i bpf/*.c bpf/*.h

test-unit: ## unit and property tests, the transceiver's excepted
	$(PYTEST) -q tests/unit --ignore=tests/unit/transceiver

test-transceiver: ## unit and property tests of the transceiver
	$(PYTEST) -q tests/unit/transceiver

test-kernel: ## packet in, packet and reason out, through the real program (root)
	$(PYTEST) -q tests/kernel

HOSTILE := $(wildcard tests/lab/test_hostile_*.py tests/lab/test_bad_*.py)

test-hostile: ## bad input and bad starts, in network namespaces (root)
	$(PYTEST) -q $(HOSTILE)

PATH_TESTS := $(wildcard tests/lab/test_siege_*.py) $(addprefix tests/lab/test_,hijack.py reach.py nexthops.py dead_relay.py workers.py)

test-path: ## the relay between clients, endpoints and attackers, in network namespaces (root)
	LAB_PREFIX=fp- $(PYTEST) -q -m "not slow" $(PATH_TESTS)

FLEET := $(addprefix tests/lab/test_,registry.py steering.py secrets.py phantom_calls.py faces.py)

test-fleet: ## signaling with Redis, regions, keys, strangers and its faces, in network namespaces (root)
	LAB_PREFIX=fg- $(PYTEST) -q $(FLEET)

RECOVERY := $(addprefix tests/lab/test_,two_relays.py flow_cache.py preload.py chaos.py)

test-recovery: ## relays that die, lose their flows or take over from each other, in network namespaces (root)
	LAB_PREFIX=fr- $(PYTEST) -q -m "not slow" $(RECOVERY)

RESUME := $(wildcard $(addprefix tests/lab/test_,resume.py bird.py regions.py three_regions.py))

test-resume: ## calls carried on elsewhere, regions, BIRD, in network namespaces (root)
	LAB_PREFIX=fs- $(PYTEST) -q -m "not slow" $(RESUME)

test-lab: ## end to end in network namespaces, both datapaths (root)
	$(PYTEST) -q tests/lab $(addprefix --ignore=,$(HOSTILE) $(PATH_TESTS) $(FLEET) $(RECOVERY) $(RESUME))

test-browser: ## Chromium, Firefox and other people's clients end to end (root)
	$(PYTEST) -q -m "not slow" tests/browser tests/interop

lock: ## write the versions in .venv to requirements.lock
	@{ echo '# Exact versions of everything in .venv; made by `make lock`.'; \
	  $(PYTHON) -m pip freeze --local --exclude-editable | grep -v -E '^(pip|setuptools|wheel|ferryline)'; } > requirements.lock

clean: down ## remove what the targets made, .venv excepted
	rm -rf build .mypy_cache .ruff_cache .pytest_cache .hypothesis
