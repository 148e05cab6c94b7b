package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// release is a release of Debian and the series of its kernels.
type release struct{ suite, series string }

// kernel is one on this disk.
type kernel struct {
	release string // as uname -r prints it
	image   string // file
	modules string // directory
}

// keyring is that of Debian's archive, which every Debian has. It knows the releases before and after its own.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// kernel returns the release's kernel out of the cache, where it is downloaded to if it is not there yet. Once there
// it stays: a test that fails today and passed yesterday should not do so because of another kernel. To get a later
// one, remove the directory.
func (r release) kernel(ctx context.Context, cache string) (kernel, error) {
	dir := filepath.Join(cache, r.suite)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := r.download(ctx, cache, dir); err != nil {
			return kernel{}, fmt.Errorf("downloading the kernel of Debian %s into %s: %w", r.suite, cache, err)
		}
	}
	pattern := r.series + ".*"
	if r.series == "" {
		pattern = "*"
	}
	images, _ := filepath.Glob(filepath.Join(dir, "boot", "vmlinuz-"+pattern))
	withModules, _ := filepath.Glob(filepath.Join(dir, "usr/lib/modules", pattern, "vmlinuz")) // since Linux 7
	images = append(images, withModules...)
	if len(images) != 1 {
		return kernel{}, fmt.Errorf("%s holds %d kernels %s, not one: remove that directory", dir, len(images), pattern)
	}
	name := strings.TrimPrefix(filepath.Base(images[0]), "vmlinuz-")
	if len(withModules) > 0 {
		name = filepath.Base(filepath.Dir(images[0]))
	}
	return kernel{release: name, image: images[0], modules: dir}, nil
}

// download unpacks the kernel's package into dir. Nothing is installed, and the machine's apt configuration is neither
// used nor changed but for the mirror: lists and packages have directories of their own.
func (r release) download(ctx context.Context, cache, dir string) error {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(cache, r.suite+"-*.part")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	mirror, err := command(ctx, work, "apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Release: bookworm")
	if err != nil {
		return err
	}
	if mirror, _, _ = strings.Cut(mirror, "\n"); mirror == "" {
		return errors.New("this machine has no package source for Debian bookworm to take the mirror from")
	}
	source := fmt.Sprintf("deb [signed-by=%s arch=amd64] %s %s main\n", keyring, mirror, r.suite)
	if err := os.WriteFile(filepath.Join(work, "sources.list"), []byte(source), 0o644); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(work, "lists", "partial"), 0o755); err != nil {
		return err
	}
	apt := func(argv ...string) (string, error) {
		return command(ctx, work, argv[0], append([]string{
			"-q", "-o", "Dir::Etc::sourcelist=" + work + "/sources.list", "-o", "Dir::Etc::sourceparts=-",
			"-o", "Dir::State::lists=" + work + "/lists", "-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=",
			"-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3",
		}, argv[1:]...)...)
	}
	if _, err := apt("apt-get", "update"); err != nil {
		return err
	}
	// The flavour for virtual machines: the same sources, and a fifth of the drivers. Its name changes with every
	// version, so there is one package that depends on the latest.
	depends, err := apt("apt-cache", "depends", "linux-image-cloud-amd64")
	if err != nil {
		return err
	}
	_, name, ok := strings.Cut(depends, "Depends: linux-image-")
	if !ok {
		return fmt.Errorf("no kernel behind linux-image-cloud-amd64: %s", depends)
	}
	name, _, _ = strings.Cut("linux-image-"+name, "\n")
	// Since Linux 7 the package is empty, and depends on one with the kernel and one with its modules.
	wanted := []string{name}
	parts, err := apt("apt-cache", "depends", name)
	if err != nil {
		return err
	}
	for line := range strings.Lines(parts) {
		_, part, _ := strings.Cut(strings.TrimSpace(line), "Depends: ")
		if strings.HasPrefix(part, "linux-binary-") || strings.HasPrefix(part, "linux-modules-") {
			wanted = append(wanted, part)
		}
	}
	// apt checks each against the digests in the archive's signed list.
	if _, err := apt(append([]string{"apt-get", "download"}, wanted...)...); err != nil {
		return err
	}
	packages, _ := filepath.Glob(filepath.Join(work, "*.deb"))
	if len(packages) != len(wanted) {
		return fmt.Errorf("downloading %s gave %d packages", strings.Join(wanted, ", "), len(packages))
	}
	for _, p := range packages {
		if _, err := command(ctx, work, "dpkg-deb", "--extract", p, "root"); err != nil {
			return err
		}
	}
	// All or nothing: a download that was interrupted must not pass for a kernel.
	return os.Rename(filepath.Join(work, "root"), dir)
}

// command runs a program to its end and returns what it printed.
func command(ctx context.Context, dir, name string, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, arguments...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(arguments, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
