// Command kernels boots Debian's kernels in an emulator and runs tare's functional checks in them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tare/tests/kernels/line"
)

func main() {
	k := flag.String("dir", "", "")
	app := flag.String("append", "", "")
	flag.Parse()
	dir := "/tmp/tk/run"
	os.MkdirAll(dir, 0o755)
	mods, err := modules(*k, wantedModules)
	if err != nil {
		panic(err)
	}
	i := initramfs{"/tmp/tk/guest", "/tmp/tk/tare", "/tmp/tk/mace.test", mods}
	if err := i.write(dir + "/initramfs"); err != nil {
		panic(err)
	}
	v, _ := filepath.Glob(*k + "/boot/vmlinuz*")
	m := machine{v[0], dir + "/initramfs", consoleIn(dir), *app}
	ctx, c := context.WithTimeout(context.Background(), 25*time.Minute)
	defer c()
	start := time.Now()
	err = m.run(ctx, func(l line.Line) { fmt.Printf("%6.1f %-5t %6.1fs %s\n%s", time.Since(start).Seconds(), l.OK, l.Took, l.Check, l.Detail) })
	fmt.Println(err, time.Since(start))
	if err != nil {
		fmt.Println(m.tail(60))
	}
}
