package delays

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"time"
)

// clientName makes this binary the tool that is run in the container: CLIENT NETWORK ADDRESS REQUESTS PAUSE.
const clientName = "delays-client"

const requestBytes = 64

// clientMain is the tool: it asks an echo server and waits for its answer, again and again, by UDP or TCP.
func clientMain(args []string) int {
	if err := client(args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func client(args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("%s takes NETWORK ADDRESS REQUESTS PAUSE, not %q", clientName, args)
	}
	requests, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	pause, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	conn, err := net.Dial(args[0], args[1])
	if err != nil {
		return err
	}
	defer conn.Close()
	// An answer that does not come ends the test instead of hanging it.
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	message := make([]byte, requestBytes)
	for range requests {
		if pause > 0 {
			// At any time of what happens at regular times.
			time.Sleep(pause/2 + rand.N(pause))
		}
		if _, err := conn.Write(message); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, message); err != nil {
			return err
		}
	}
	return nil
}
