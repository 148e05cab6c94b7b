package load

import (
	"testing"
	"time"
)

// SetServerPatience shortens it for one test.
func SetServerPatience(t *testing.T, d time.Duration) {
	before := serverPatience
	serverPatience = d
	t.Cleanup(func() { serverPatience = before })
}
