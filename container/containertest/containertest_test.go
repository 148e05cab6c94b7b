package containertest_test

import (
	"os"
	"strings"
	"testing"

	"tare/container/containertest"
)

func TestMain(m *testing.M) { os.Exit(containertest.Main(m)) }

func TestContainerReachesRemote(t *testing.T) {
	remote := containertest.StartRemote(t)
	for _, start := range []func(testing.TB) *containertest.Runtime{containertest.StartDocker, containertest.StartPodman} {
		runtime := start(t)
		t.Run(runtime.Name, func(t *testing.T) {
			runtime.RunContainer(t, "reach")
			output := runtime.Output(t, "exec", "reach", "ping", "-c", "1", remote.Addr)
			if !strings.Contains(output, " 0% packet loss") {
				t.Errorf("no answer from the remote machine:\n%s", output)
			}
		})
	}
}
