package load_test

import (
	"testing"

	"tare/bench/load"
	"tare/container/containertest"
)

func TestContainerArms(t *testing.T) {
	containertest.StartDocker(t)
	containertest.StartPodman(t)
	for _, name := range []string{"docker-host", "docker-bridge", "docker-published", "docker-macvlan", "podman", "ovs-userspace"} {
		t.Run(name, func(t *testing.T) {
			link := up(t, name, nil)
			t.Log(link.Describe)
			workloads := []string{"tcp"}
			if name == "docker-published" || name == "ovs-userspace" { // programs of their own in the way
				workloads = append(workloads, "udp")
			}
			for _, workload := range workloads {
				s := round(t, link, workload, load.Params{}, short)
				t.Logf("%s: %d messages, p50 %d ns, %+v", workload, s.Messages, s.RTT.ValueAtQuantile(50), s.Host)
				if s.Messages == 0 || !s.Host.Client.Known || !s.Host.Server.Known {
					t.Errorf("%s: %+v", workload, s)
				}
			}
		})
	}
}
