package main

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Some kernels keep single packets from eBPF programs, more of them while process 1 is busy (docs/subtract.md). A run
// tells when that has happened, and what it shows is then incomplete and right. So what demands that every packet was
// seen is done again when a run says otherwise, and fails only if it does so time after time.
const attempts = 6

// What a run says when packets went unseen, in text and in JSON.
var wentUnseen = regexp.MustCompile(` went unseen\b|"audit":\{[^}]*"missing":[1-9]`)

func unseen(output string) bool { return wentUnseen.MatchString(output) }

// scripts runs each script, and again where a run in it has told of unseen packets and it has failed.
type scripts struct{ *testing.T }

func (s scripts) Verbose() bool   { return testing.Verbose() }
func (s scripts) Log(args ...any) { s.T.Log(args...) }

func (s scripts) Run(name string, f func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) {
		var parallel sync.Once
		for n := 1; ; n++ {
			a := &attempt{T: t, parallel: &parallel}
			done := make(chan struct{})
			go func() {
				defer close(done)
				f(a)
			}()
			<-done
			log := a.log.String()
			if !a.failed || t.Skipped() {
				return
			}
			if t.Failed() || n == attempts || !unseen(log) {
				t.Fatal(log)
			}
			t.Logf("attempt %d fails, and packets went unseen; once more", n)
		}
	})
}

// attempt is one run of a script. Its failure is the test's only if scripts says so.
type attempt struct {
	*testing.T
	parallel *sync.Once
	failed   bool
	log      strings.Builder
}

func (a *attempt) Parallel()                          { a.parallel.Do(a.T.Parallel) }
func (a *attempt) Verbose() bool                      { return testing.Verbose() }
func (a *attempt) Run(_ string, _ func(testscript.T)) { panic("a script has no scripts in it") }
func (a *attempt) Log(args ...any)                    { fmt.Fprintln(&a.log, args...) }
func (a *attempt) Fatal(args ...any)                  { a.Log(args...); a.FailNow() }
func (a *attempt) Skip(args ...any)                   { a.T.Skip(args...) }
func (a *attempt) FailNow() {
	a.failed = true
	runtime.Goexit()
}
