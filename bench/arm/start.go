package arm

import (
	"os/exec"
	"runtime"
	"sync"
)

// Start starts a command that is to die with this process. The kernel sends the parent-death signal when the thread ends
// that started the child, and Go ends threads: each one that was locked by a goroutine which returned so, as those do that
// change a thread's namespace. So all is started by one thread that stays.
func Start(cmd *exec.Cmd) error {
	done := make(chan error)
	starter() <- func() { done <- cmd.Start() }
	return <-done
}

var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread() // and never unlock it
		for f := range work {
			f()
		}
	}()
	return work
})
