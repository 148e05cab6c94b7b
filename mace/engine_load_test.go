package mace

import (
	"errors"
	"github.com/cilium/ebpf"
	"strings"
	"testing"
)

func TestOpenEveryPath(t *testing.T) {
	for _, name := range PathNames() {
		t.Run(name, func(t *testing.T) {
			path, err := ParsePath(name)
			if err != nil {
				t.Fatal(err)
			}
			engine, err := Open(Options{Path: path, NICs: []Device{{NetNSCookie: 1, Index: 1 << 30, Name: "none"}}})
			if err != nil {
				var ve *ebpf.VerifierError
				if errors.As(err, &ve) {
					l := ve.Log
					if len(l) > 60 {
						l = l[len(l)-60:]
					}
					t.Fatal(strings.Join(l, "\n"))
				}
				t.Fatalf("%+v", err)
			}
			if err := engine.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
