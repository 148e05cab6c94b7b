// Package console is what the emulated machine and its host have agreed on: how results come out and where files are.
package console

// Line is the outcome of one check, a JSON object on a line of its own. The last line is Done and nothing else: a guest
// that dies says less.
type Line struct {
	Check  string  `json:"check,omitempty"`
	Failed string  `json:"failed,omitempty"` // why; several lines, mostly a program's output
	TookS  float64 `json:"took_s,omitempty"`
	Done   bool    `json:"done,omitempty"`
}

// ResultsPort is the guest's device for lines. The first serial port is the kernel's, whose messages would come in
// between.
const ResultsPort = "/dev/ttyS1"

// Files in the guest.
const (
	Tare        = "/usr/bin/tare"
	EngineTests = "/usr/bin/mace.test"      // the tests of package mace
	TestNames   = "/etc/engine-tests"       // which of them to run: a pattern per line, each a check
	Busy        = "/run/busy"               // as long as it is there, the first process keeps busy
	Modules     = "/modules"                // directory of kernel modules, without any below it
	ModuleOrder = "/etc/kernel-modules"     // their names, each after those that it depends on
	Path        = "/usr/bin:/usr/sbin:/bin" // where the guest looks for programs
)
