package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"tare/tests/kernels/console"
)

// tools are the host's programs that come with tare: those that it corrects, what the lab and the engine's tests start,
// and the shell that guards a tool, with what that starts.
var tools = []string{"ping", "fping", "traceroute", "nsenter", "sh", "grep", "sleep"}

// initramfs is the whole of the guest's file system.
type initramfs struct {
	init, tare, engineTests string // files of the host
	testNames               string
	modules                 []module
}

// build compiles what is the guest's own. tare is there already: the binary under test is the one that users get.
func (i initramfs) build(ctx context.Context, goTool string) error {
	for _, arguments := range []string{
		"build -o " + i.init + " ./tests/kernels/guest",
		"test -c -o " + i.engineTests + " ./mace",
	} {
		argv := strings.Fields(goTool + " " + arguments)
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
		}
	}
	if _, err := os.Stat(i.tare); err != nil {
		return fmt.Errorf("%w: make build makes it", err)
	}
	return nil
}

// write writes the archive.
func (i initramfs) write(path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buffer := bufio.NewWriter(file)
	a := newArchive(buffer)
	a.device("/dev/console", 5, 1) // the first process's output, before there is a devtmpfs
	files := map[string]string{"/init": i.init, console.Tare: i.tare, console.EngineTests: i.engineTests}
	for _, tool := range tools {
		if err := addTool(files, tool); err != nil {
			return err
		}
	}
	files["/bin/sh"] = files["/usr/bin/sh"]
	for name, source := range files {
		content, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		a.file(name, 0o755, content)
	}
	var order []string
	for _, m := range i.modules {
		a.file(filepath.Join(console.Modules, m.name), 0o644, m.content)
		order = append(order, m.name)
	}
	a.file(console.ModuleOrder, 0o644, []byte(strings.Join(order, "\n")))
	a.file("/etc/protocols", 0o644, []byte("icmp 1 ICMP\nipv6-icmp 58 IPv6-ICMP\n")) // where fping looks up what it sends
	a.file(console.TestNames, 0o644, []byte(i.testNames))
	if err := a.close(); err != nil {
		return err
	}
	return buffer.Flush()
}

// Lines of ldd are "libc.so.6 => /lib/libc.so.6 (0x...)" and, for the loader, "/lib64/ld.so (0x...)".
var library = regexp.MustCompile(`(?m)^\s*(?:\S+ => )?(/\S+) \(0x`)

// addTool adds a program of the host, and the libraries that it is linked to.
func addTool(files map[string]string, tool string) error {
	program, err := exec.LookPath(tool)
	if err != nil {
		return fmt.Errorf("%w: ./setup installs it", err)
	}
	files["/usr/bin/"+tool] = program
	out, err := exec.Command("ldd", program).CombinedOutput()
	if err != nil {
		return fmt.Errorf("looking for the libraries of %s: %w: %s", program, err, out)
	}
	for _, match := range library.FindAllStringSubmatch(string(out), -1) {
		files[match[1]] = match[1]
	}
	return nil
}
