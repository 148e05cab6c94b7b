package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/container/containertest"
)

// TestNetContainers gives pipes to containers of real Docker and podman, by a bind mount and an environment variable, and
// lets them exchange checked data: a server in a container of the one, a client in one of the other.
func TestNetContainers(t *testing.T) {
	docker, podman := containertest.StartDocker(t), containertest.StartPodman(t)
	n := testNet{t, freshName("c"), dockNetPrograms(t)}
	t.Cleanup(func() { _ = n.command("down").Run() })
	n.run("up")
	for _, tt := range []struct {
		name           string
		server, client *containertest.Runtime
		options        []string // of both containers
	}{
		{name: "docker", server: docker, client: docker},
		{name: "podman", server: podman, client: podman},
		{name: "docker to podman", server: docker, client: podman},
		{name: "no network, no capabilities, not root", server: docker, client: podman,
			options: []string{"--network=none", "--cap-drop=ALL", "--user=1000:1000"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := testNet{t, n.name, n.build}
			start := func(r *containertest.Runtime, pipe, address string) string {
				// The machine's libraries: programs are dynamically linked, and the image has only what its own need.
				options := []string{"-v", n.build + ":/docknet:ro", "-v", "/usr/lib:/usr/lib:ro", "-v", "/lib64:/lib64:ro"}
				options = append(options, "-v", "/lib:/lib:ro")
				docker := n.run("add", pipe, "--ip", address, "--id", "1000", "--docker-args")
				options = append(append(options, strings.Fields(docker)...), tt.options...)
				name := n.name + "-" + pipe
				r.RunContainer(t, name, options...)
				return name
			}
			server, client := start(tt.server, "server", "10.50.0.2/24"), start(tt.client, "client", "10.50.0.3/24")
			t.Cleanup(func() {
				n.run("rm", "server")
				n.run("rm", "client")
			})
			tt.server.Output(t, "exec", "--detach", server, "/docknet/docknet-echo", "7")
			n.waitAttached("server", true)
			time.Sleep(50 * time.Millisecond) // until it listens
			const size = "20000000"
			said := tt.client.Output(t, "exec", client, "/docknet/docknet-check", "echo", "10.50.0.2", "7", size)
			if want := "sent " + size + " received " + size; said != want {
				t.Errorf("docknet-check says %q, want %q", said, want)
			}
		})
	}
}

// TestNetKilledDaemonAndStream kills the daemon with bytes under way, several times: none is lost and none comes twice.
func TestNetKilledDaemonAndStream(t *testing.T) {
	n := testNet{t, freshName("k"), dockNetPrograms(t)}
	t.Cleanup(func() { _ = n.command("down").Run() })
	n.run("up")
	n.run("add", "a", "--ip", "10.50.0.2/24")
	n.run("add", "b", "--ip", "10.50.0.3/24")
	n.serve("b", "docknet-echo", "7")
	client := n.command("exec", "a", "--", filepath.Join(n.build, "docknet-check"), "echo", "10.50.0.3", "7", "1000000000")
	var said strings.Builder
	client.Stdout, client.Stderr = &said, &said
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- client.Wait() }()
	n.waitAttached("a", true)
	kills := 0
	for ; kills < 2; kills++ {
		before := n.pipe("a").Stats.TxFrames
		n.waitFor("frames between kills", func() bool { return n.pipe("a").Stats.TxFrames > before+1000 })
		n.kill(n.daemonPID())
		n.run("up")
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("after %d kills: %v\n%s", kills, err, &said)
		}
	case <-time.After(2 * time.Minute):
		_ = client.Process.Kill()
		t.Errorf("the stream hangs after %d kills", kills)
	}
}
