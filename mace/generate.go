package mace

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64,arm64 -go-package mace -type tare_record -type tare_delivery -type tare_counters -type tare_nic_counters -type tare_aggregate -type tare_rejections -type active_namespace bpf bpf/tare.bpf.c -- -O2 -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter
