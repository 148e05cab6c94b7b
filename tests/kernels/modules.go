package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// What the lab's networks, its firewall and the tests need and Debian builds as modules. A distribution's modprobe
// would load them on demand.
var wantedModules = []string{
	"veth", "bridge", "br_netfilter", "vxlan", "macvlan",
	"nf_tables", "nft_chain_nat", "nft_masq", "nft_nat", "nft_ct", "nf_nat", "nf_conntrack",
}

// module is a kernel module that is to be loaded.
type module struct {
	name    string
	content []byte
}

// modules returns the wanted modules of the kernel below root, each after those that it depends on. What is built
// into the kernel is left out.
func modules(root string, wanted []string) ([]module, error) {
	files := map[string]string{}
	builtin := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if name, ok := moduleName(path); ok {
			files[name] = path
		} else if entry.Name() == "modules.builtin" {
			text, err := os.ReadFile(path)
			for line := range strings.FieldsSeq(string(text)) {
				name, _ := moduleName(line)
				builtin[name] = true
			}
			return err
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for modules: %w", err)
	}
	var order []module
	done := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		if done[name] || builtin[name] {
			return nil
		}
		done[name] = true
		path, ok := files[name]
		if !ok {
			return fmt.Errorf("this kernel has no module %s", name)
		}
		content, err := readModule(path)
		if err != nil {
			return err
		}
		depends, err := dependencies(content)
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		for _, other := range depends {
			if err := add(other); err != nil {
				return err
			}
		}
		order = append(order, module{name, content})
		return nil
	}
	for _, name := range wanted {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// moduleName is a module file's module: of net/nf_nat.ko.xz it is nf_nat.
func moduleName(path string) (name string, ok bool) {
	name, _, ok = strings.Cut(filepath.Base(path), ".ko")
	return strings.ReplaceAll(name, "-", "_"), ok
}

// readModule reads a module, decompressed: not every kernel can do that by itself.
func readModule(path string) ([]byte, error) {
	if !strings.HasSuffix(path, ".xz") {
		return os.ReadFile(path)
	}
	content, err := exec.Command("busybox", "unxz", "-c", path).Output()
	if err != nil {
		return nil, fmt.Errorf("decompressing %s: %w", path, err)
	}
	return content, nil
}

// dependencies reads what a module says of itself. The package has no modules.dep, which depmod would make from this.
func dependencies(content []byte) ([]string, error) {
	file, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	section := file.Section(".modinfo")
	if section == nil {
		return nil, errors.New("it has no .modinfo")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	for field := range bytes.SplitSeq(info, []byte{0}) {
		if names, ok := strings.CutPrefix(string(field), "depends="); ok && names != "" {
			return strings.Split(names, ","), nil
		}
	}
	return nil, nil
}
