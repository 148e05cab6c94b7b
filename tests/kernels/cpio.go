package main

import (
	"fmt"
	"io"
	"path"
	"strings"
)

// archive writes what the kernel unpacks as its first file system: cpio in the "newc" format, as the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst describes it.
type archive struct {
	out   io.Writer
	inode int
	known map[string]bool
	err   error // the first one
}

// File types, as in st_mode.
const (
	typeDirectory = 0o040000
	typeFile      = 0o100000
	typeDevice    = 0o020000
)

func newArchive(out io.Writer) *archive {
	return &archive{out: out, known: map[string]bool{".": true}}
}

// file adds a file, and the directories above it.
func (a *archive) file(name string, mode int, content []byte) {
	a.parents(name)
	a.entry(name, typeFile|mode, content, 0, 0)
}

func (a *archive) device(name string, major, minor int) {
	a.parents(name)
	a.entry(name, typeDevice|0o600, nil, major, minor)
}

func (a *archive) parents(name string) {
	dir := path.Dir(strings.TrimPrefix(name, "/"))
	if a.known[dir] {
		return
	}
	a.known[dir] = true
	a.parents(dir)
	a.entry(dir, typeDirectory|0o755, nil, 0, 0)
}

// close ends the archive.
func (a *archive) close() error {
	a.entry("TRAILER!!!", 0, nil, 0, 0)
	return a.err
}

func (a *archive) entry(name string, mode int, content []byte, major, minor int) {
	a.inode++
	name = strings.TrimPrefix(name, "/")
	var header strings.Builder
	header.WriteString("070701")
	for _, field := range []int{
		a.inode, mode, 0, 0, 1, 0, len(content), 0, 0, major, minor, len(name) + 1, 0,
	} {
		fmt.Fprintf(&header, "%08X", field)
	}
	header.WriteString(name + "\x00")
	a.write([]byte(header.String()))
	a.write(content)
}

// write pads to 4 bytes, which is where the next part must begin.
func (a *archive) write(b []byte) {
	for _, part := range [][]byte{b, make([]byte, -len(b)&3)} {
		if a.err == nil {
			_, a.err = a.out.Write(part)
		}
	}
}
