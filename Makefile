# make help lists the targets. On a fresh Debian 12 start with ./setup, which installs make, too.

# The go command that is new enough for go.mod. Not ':=': on a fresh machine it is there only after the setup target.
GO = $(or $(shell ./setup --print-go),$(error no Go $(shell sed -n 's/^go //p' go.mod) or later: run ./setup))
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.7.0

VERSION = $(or $(shell git -c safe.directory='*' describe --tags --always --dirty 2>/dev/null),devel)
TODAY = $(shell date -u +%F)
SCRIPTS = setup .ci/run docknet/lwip/fetch docknet/tests/sanitize docknet/tests/ci $(shell find . -name '*.sh' -not -path './bin/*')
GENERATED = $(shell find . -name '*_bpfel.go' -o -name '*_bpfel.o' | sort)
C_SOURCES = $(wildcard */bpf/*.[ch]) $(shell find docknet -path docknet/lwip -prune -o -path 'docknet/build*' -prune -o -name '*.[ch]' -print)

# No stamp of the repository's state in binaries: asking for it fails in a checkout that another user owns.
export GOFLAGS += -buildvcs=false
# go keeps its caches below HOME, which a CI job may not have.
ifeq ($(HOME),)
export HOME := $(shell getent passwd "$$(id -u)" | cut -d: -f6)
endif

.DEFAULT_GOAL := help
# One thing at a time: the order of prerequisites below means something.
.NOTPARALLEL:
.PHONY: help setup build docknet test test-docknet test-kernels lint generate check-generated bench accuracy compare demo clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## install what building and testing need (Debian 12, as root)
	@./setup

build: ## build bin/tare, a static binary
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/tare ./cmd/tare

# The programs of DockNet that the tests run.
export TARE_DOCKNET_BUILD = $(CURDIR)/docknet/build

docknet: setup ## build DockNet: dockdaemon, DockLib and its programs, in docknet/build
	docknet/lwip/fetch
	@test -f docknet/build/build.ninja || meson setup docknet/build docknet
	ninja -C docknet/build

test: setup build lint check-generated test-docknet ## run everything that CI runs (as root); installs what it needs
	$(GO) test -count=1 -p 1 -timeout 20m ./...
	$(GO) run ./tests/kernels -go '$(GO)' -kernel 6.1,6.12

test-docknet: setup ## build DockNet and test its C code, with sanitizers and fuzzers, too (70 s)
	docknet/tests/ci

test-kernels: setup build ## run tare in all of Debian's other kernels, in an emulator (120 MB of downloads, once)
	$(GO) run ./tests/kernels -go '$(GO)'

lint: ## check formatting and run the linters
	@unformatted=$$("$$($(GO) env GOROOT)/bin/gofmt" -l $$(find . -name '*.go')) && \
		if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	shellcheck $(SCRIPTS)
	clang-format-14 --dry-run -Werror $(C_SOURCES)

generate: ## compile the eBPF programs again (needs clang-14); the result is committed
	$(GO) generate ./...

check-generated: ## check that the committed eBPF programs are what their sources give
	@before=$$(sha256sum $(GENERATED) /dev/null) && $(MAKE) --no-print-directory generate && \
		after=$$(sha256sum $(GENERATED) /dev/null) && \
		if [ "$$before" != "$$after" ]; then echo "the committed eBPF programs are not those of their sources: commit what 'make generate' made"; exit 1; fi

demo: setup build ## show in a few seconds what tare does (as root)
	bin/tare demo

bench: setup build ## measure tare here: accuracy, coverage, false matches, perturbation (as root, 3 minutes)
	bin/tare eval all --quick

accuracy: setup build ## measure at length and renew docs/accuracy.md from it (as root, 12 minutes)
	bin/tare eval all --save docs/results/$(TODAY)
	bin/tare eval show --document docs/accuracy.md docs/results/$(TODAY)/eval.json

compare: setup build ## compare what container networks cost here (as root, 1 minute)
	bin/tare bench

clean: ## remove what was built
	rm -rf bin docknet/build*
