package containertest

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Image is the name of the image that containers are made from: the machine's own measurement tools, the
// libraries they need and busybox. No registry is asked.
const Image = "tare-test"

var (
	imagePrograms = []string{"busybox", "ping", "fping", "traceroute", "tracepath", "mtr", "mtr-packet", "iperf3"}
	imageShell    = []string{"sh", "cat", "echo", "env", "false", "ip", "kill", "ls", "nc", "sleep", "true", "wget"}
)

// writeImage writes the image's root file system as a tar archive.
func writeImage(to io.Writer) error {
	archive := tar.NewWriter(to)
	for _, dir := range []string{"bin", "etc", "lib", "lib64", "usr", "usr/lib", "usr/lib64", "tmp", "proc", "sys", "dev", "var", "run"} {
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}); err != nil {
			return err
		}
	}
	files := map[string]string{} // name in the image: file on this machine
	for _, name := range imagePrograms {
		program, err := exec.LookPath(name)
		if err != nil {
			if name == "busybox" || name == "ping" {
				return fmt.Errorf("no %s for the test image: run ./setup", name)
			}
			continue
		}
		files["bin/"+name] = program
		libraries, err := libraries(program)
		if err != nil {
			return err
		}
		for _, library := range libraries {
			files[strings.TrimPrefix(library, "/")] = library
		}
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		content, err := os.ReadFile(files[name])
		if err != nil {
			return err
		}
		if err := writeFile(archive, name, 0o755, content); err != nil {
			return err
		}
	}
	for _, name := range imageShell {
		header := &tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + name, Linkname: "busybox", Mode: 0o777}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
	}
	for name, content := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n",
		// fping asks for its protocol by name, and ends without a word where there is no answer.
		"etc/protocols": "icmp 1 ICMP\nipv6-icmp 58 IPv6-ICMP\n",
		"etc/group":     "root:x:0:\nnogroup:x:65534:\n",
		"etc/not-run":   "a file without the right to run it\n",
	} {
		if err := writeFile(archive, name, 0o644, []byte(content)); err != nil {
			return err
		}
	}
	return archive.Close()
}

func writeFile(archive *tar.Writer, name string, mode int64, content []byte) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: path.Clean(name), Mode: mode, Size: int64(len(content))}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := archive.Write(content)
	return err
}

// libraries lists the shared libraries of a program, its loader included, as the loader itself finds them.
func libraries(program string) ([]string, error) {
	var output, complaint bytes.Buffer
	command := exec.Command("ldd", program)
	command.Stdout, command.Stderr = &output, &complaint
	if err := command.Run(); err != nil {
		if strings.Contains(output.String()+complaint.String(), "not a dynamic executable") {
			return nil, nil
		}
		return nil, fmt.Errorf("listing the libraries of %s: %w: %s", program, err, &complaint)
	}
	var found []string
	for line := range strings.Lines(output.String()) { // "libc.so.6 => /lib/.../libc.so.6 (0x7f...)" or "/lib64/ld-... (0x7f...)"
		for field := range strings.FieldsSeq(line) {
			if filepath.IsAbs(field) {
				found = append(found, field)
			}
		}
	}
	return found, nil
}
