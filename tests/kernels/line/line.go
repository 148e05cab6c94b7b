// Package line is what the guest tells its host, as one JSON object per line on the second serial port.
package line

// Line is the outcome of one check. The last line is Done and nothing else: a guest that dies says less.
type Line struct {
	Check  string  `json:"check,omitempty"`
	OK     bool    `json:"ok,omitempty"`
	Detail string  `json:"detail,omitempty"` // of a failed check its output, in several lines
	Took   float64 `json:"took_s,omitempty"`
	Done   bool    `json:"done,omitempty"`
}

// Port is the guest's device for lines: the console has the first one, and the kernel's messages would fall into them.
const Port = "/dev/ttyS1"

// Where things are in the guest.
const (
	Tare        = "/usr/bin/tare"
	EngineTests = "/usr/bin/mace.test"
	ModuleList  = "/modules/order" // one path per line, each after those that it depends on
)
