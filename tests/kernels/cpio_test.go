package main

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestArchiveBytes(t *testing.T) {
	var got bytes.Buffer
	a := newArchive(&got)
	a.file("/a", 0o755, []byte("hello"))
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	zero := strings.Repeat("0", 8)
	want := "070701" + "00000001" + "000081ED" + zero + zero + "00000001" + zero + "00000005" +
		zero + zero + zero + zero + "00000002" + zero + "a\x00" + "hello\x00\x00\x00" +
		"070701" + "00000002" + zero + zero + zero + "00000001" + zero + zero +
		zero + zero + zero + zero + "0000000B" + zero + "TRAILER!!!\x00" + "\x00\x00\x00"
	if got.String() != want {
		t.Errorf("got  %q\nwant %q", got.String(), want)
	}
}

// Another program must read it as it was meant.
func TestArchiveUnpacks(t *testing.T) {
	var archive bytes.Buffer
	a := newArchive(&archive)
	a.device("/dev/console", 5, 1)
	a.file("/usr/bin/one", 0o755, []byte("1"))
	a.file("/usr/bin/empty", 0o644, nil)
	a.file("/usr/lib/two", 0o644, bytes.Repeat([]byte("2"), 4097))
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	list := exec.Command("busybox", "cpio", "-t")
	list.Stdin = &archive
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"dev", "dev/console", "usr", "usr/bin", "usr/bin/one", "usr/bin/empty", "usr/lib", "usr/lib/two"}
	if got := strings.Fields(string(out)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestModuleName(t *testing.T) {
	for path, want := range map[string]string{
		"kernel/net/bridge/bridge.ko":           "bridge",
		"kernel/net/bridge/br-netfilter.ko.xz":  "br_netfilter",
		"kernel/drivers/net/vxlan/vxlan.ko.zst": "vxlan",
		"modules.order":                         "",
	} {
		name, ok := moduleName(path)
		if ok != (want != "") || ok && name != want {
			t.Errorf("%s is module %q, %t; want %q", path, name, ok, want)
		}
	}
}
