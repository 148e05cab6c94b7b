package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"tare/container"
	"tare/lab"
	"tare/mace"
	"tare/mace/macetest"
	"tare/subtract"
	"tare/tests/kernels/console"
)

// Some kernels run no eBPF program while process 1 is current. These run all, so programs do nothing then by themselves:
// process 1 is ours here, and can be kept busy, and with RPS packets are handled on top of it.

// busyPings are as many as make sure that some of them meet a busy process 1.
const busyPings = 100

// keepBusy is process 1's part: it is busy half of the time as long as the checks ask for it.
func keepBusy() {
	asked := func() bool { _, err := os.Stat(console.Busy); return err == nil }
	for {
		time.Sleep(50 * time.Millisecond)
		if asked() {
			macetest.Spin(time.Millisecond, asked)
		}
	}
}

// checkBlindness checks that what programs did not see is told, and that nothing is told of where they saw all.
func checkBlindness(r *report) {
	const name = "blind"
	var l *lab.Lab
	r.check("lab: "+name, func() (err error) {
		if _, err := output(console.Tare, "lab", "up", "--name", name, "--rps"); err != nil {
			return err
		}
		l, err = lab.Open(name)
		return err
	})
	if l == nil {
		return
	}
	r.check("audit: process 1 is busy, and programs run", func() error {
		audit, err := auditWithBusyInit(l, 0)
		if err == nil && (audit.Missing() > 0 || audit.Seen < 2*busyPings) {
			err = fmt.Errorf("%+v", audit)
		}
		return err
	})
	r.check("audit: process 1 keeps programs from running", func() error {
		audit, err := auditWithBusyInit(l, 1)
		if err == nil && (audit.Missing() == 0 || audit.Seen >= audit.DevicePackets || len(audit.Incomplete) == 0) {
			err = fmt.Errorf("nothing is missing: %+v", audit)
		}
		return err
	})
	r.check("lab: "+name+" down", func() error {
		_, err := output(console.Tare, "lab", "down", "--name", name)
		return err
	})
}

// auditWithBusyInit is that of a run during which process 1 is busy, and keeps programs from running if it is blindPID.
func auditWithBusyInit(l *lab.Lab, blindPID int) (audit subtract.Audit, err error) {
	target, err := container.FromNetNS(l.NetNSPath(lab.Container(1)))
	if err != nil {
		return audit, err
	}
	path, err := mace.ParsePath("inner-dev")
	if err != nil {
		return audit, err
	}
	if err := os.WriteFile(console.Busy, nil, 0o600); err != nil {
		return audit, err
	}
	defer os.Remove(console.Busy)
	var stdout, stderr bytes.Buffer
	err = subtract.Run(context.Background(), subtract.RunOptions{
		Options: subtract.Options{Target: target, Path: path, BlindPID: blindPID}, As: "inner-dev", JSON: true,
		Argv:   []string{"ping", "-c", strconv.Itoa(busyPings), "-i", "0.01", "-W", "5", l.RemoteAddr4().String()},
		Stdout: &stdout, Stderr: &stderr,
	})
	if err != nil {
		return audit, errors.Join(err, errors.New(stderr.String()))
	}
	summary, err := subtract.ReadSummary(&stdout)
	if err == nil && summary.Received != busyPings {
		err = fmt.Errorf("%d of %d pings were answered", summary.Received, busyPings)
	}
	return summary.Audit, err
}
