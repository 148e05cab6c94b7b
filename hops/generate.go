package hops

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64,arm64 -go-package hops -type hops_trace -type hops_delivery -type hops_point -type hops_counters -type trace_slot bpf bpf/hops.bpf.c -- -O2 -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter
