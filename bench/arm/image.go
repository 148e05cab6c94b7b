package arm

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// Containers are made from an image with next to nothing in it. The host's own /usr is mounted read-only, so that the
// very files that run on the host run in the container: the same bytes, in the same page cache.
const imageName = "tare-bench-root:1"

// rootDirs are the image's directories. Those of rootLinks are links into /usr on the host, or directories of their own,
// which are mounted then.
var (
	rootDirs  = []string{"etc", "usr", "tmp", "proc", "sys", "dev", "run", "var", "root"}
	rootLinks = []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"}
	// What the loader and the tools look up below /etc.
	rootFiles = []string{"/etc/ld.so.cache", "/etc/alternatives"}
)

const rootPasswd = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"

// hostMounts are the mounts of the host's tools, as options of 'docker run'.
func hostMounts(extra ...string) []string {
	paths := append([]string{"/usr"}, extra...)
	for _, name := range rootLinks {
		if info, err := os.Lstat("/" + name); err == nil && info.IsDir() {
			paths = append(paths, "/"+name)
		}
	}
	for _, path := range rootFiles {
		if _, err := os.Stat(path); err == nil {
			paths = append(paths, path)
		}
	}
	var options []string
	for _, path := range paths {
		options = append(options, "--mount", "type=bind,source="+path+",target="+path+",readonly")
	}
	return options
}

// writeRoot writes the image's file system as a tar archive.
func writeRoot() ([]byte, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	headers := []*tar.Header{}
	for _, dir := range rootDirs {
		headers = append(headers, &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755})
	}
	for _, name := range rootLinks {
		if target, err := os.Readlink("/" + name); err == nil {
			headers = append(headers, &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777})
		}
	}
	for _, header := range headers {
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
	}
	for name, text := range map[string]string{"etc/passwd": rootPasswd, "etc/group": "root:x:0:\nnogroup:x:65534:\n"} {
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			return nil, err
		}
		if _, err := archive.Write([]byte(text)); err != nil {
			return nil, err
		}
	}
	return buffer.Bytes(), archive.Close()
}

// importing keeps two arms of one process from making the image at the same time.
var importing sync.Mutex

// importImage makes the image where it is not there yet. It stays: a few hundred bytes.
func (r engine) importImage(ctx context.Context) error {
	importing.Lock()
	defer importing.Unlock()
	if _, err := r.output(ctx, "image", "inspect", "--format", "{{.ID}}", imageName); err == nil {
		return nil
	}
	root, err := writeRoot()
	if err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, runtimePatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, string(r), "import", "-", imageName)
	cmd.Stdin = bytes.NewReader(root)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s import: %w: %s", r, err, strings.Join(strings.Fields(string(output)), " "))
	}
	return nil
}
