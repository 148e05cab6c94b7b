package container

import (
	"io"
	"os/exec"
	"syscall"
)

// guardScript waits on its standard input. The line "done" means that all went well; an end of file without it,
// that the process which held the other end died, by SIGKILL perhaps, and can stop nothing any more. The shell
// then ends what carries the mark ($1), for five seconds: a runtime may be about to start the tool only now.
const guardScript = `
read -r line && exit 0
signal=TERM
i=0
while [ "$i" -lt 50 ]; do
	[ "$i" -lt 20 ] || signal=KILL
	for file in $(grep -lszxF -e "$1" /proc/[0-9]*/environ); do
		pid=${file#/proc/}
		kill -s "$signal" "${pid%/environ}"
	done
	i=$((i + 1))
	sleep 0.1
done
`

// guard is the shell that runs guardScript, and our end of its standard input. No other process holds that end:
// the descriptor closes on exec.
type guard struct {
	command *exec.Cmd
	input   io.WriteCloser
}

func (g *guard) start(mark string) error {
	g.command = exec.Command("/bin/sh", "-c", guardScript, "tare-guard", mark)
	g.command.Dir = "/"                                            // no file system is kept busy
	g.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}     // the terminal's signals are not for the guard
	g.command.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"} // and above all not the mark
	var err error
	if g.input, err = g.command.StdinPipe(); err != nil {
		return err
	}
	return g.command.Start()
}

func (g *guard) dismiss() {
	_, _ = io.WriteString(g.input, "done\n")
	g.input.Close()
	_ = g.command.Wait()
}
