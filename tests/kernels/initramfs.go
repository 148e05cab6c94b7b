package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"tare/tests/kernels/line"
)

// The tools that tare corrects, and what the lab and the engine's tests start. They are the host's.
var tools = []string{"ping", "fping", "traceroute", "nsenter", "busybox"}

// initramfs is the whole of the guest's file system.
type initramfs struct {
	init, tare, engineTests string // files of the host
	modules                 []module
}

// write writes the archive to a file.
func (i initramfs) write(path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buffer := bufio.NewWriter(file)
	a := newArchive(buffer)
	// Before devtmpfs is there, the first process gets its output from this one.
	a.device("/dev/console", 5, 1)
	for name, source := range map[string]string{"/init": i.init, line.Tare: i.tare, line.EngineTests: i.engineTests} {
		content, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		a.file(name, 0o755, content)
	}
	if err := addTools(a); err != nil {
		return err
	}
	var order strings.Builder
	for _, m := range i.modules {
		a.file(filepath.Join(filepath.Dir(line.ModuleList), m.name), 0o644, m.content)
		fmt.Fprintln(&order, m.name)
	}
	a.file(line.ModuleList, 0o644, []byte(order.String()))
	if err := a.close(); err != nil {
		return err
	}
	return buffer.Flush()
}

// addTools adds programs of the host, with the libraries that they are linked to.
func addTools(a *archive) error {
	added := map[string]bool{}
	for _, tool := range tools {
		path, err := exec.LookPath(tool)
		if err != nil {
			return fmt.Errorf("%w: ./setup installs it", err)
		}
		files, err := libraries(path)
		if err != nil {
			return err
		}
		for _, library := range files {
			if added[library] {
				continue
			}
			added[library] = true
			content, err := os.ReadFile(library)
			if err != nil {
				return err
			}
			a.file(library, 0o755, content)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		a.file("/usr/bin/"+tool, 0o755, content)
	}
	return nil
}

// Lines of ldd are "libc.so.6 => /lib/libc.so.6 (0x...)" and, for the loader, "/lib64/ld.so (0x...)".
var library = regexp.MustCompile(`(?m)^\s*(?:\S+ => )?(/\S+) \(0x`)

// libraries lists what a program is linked to; nothing if it is static.
func libraries(program string) ([]string, error) {
	out, err := exec.Command("ldd", program).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "not a dynamic executable") {
		return nil, fmt.Errorf("looking for the libraries of %s: %w: %s", program, err, out)
	}
	var files []string
	for _, match := range library.FindAllStringSubmatch(string(out), -1) {
		files = append(files, match[1])
	}
	return files, nil
}
