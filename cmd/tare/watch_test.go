package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"tare/lab"
)

func TestWatchScripts(t *testing.T) { runScripts(t, "watch", nil) }

// TestDemo is alone: the demonstration's lab has a name of its own.
func TestDemo(t *testing.T) { runScripts(t, "demo", nil) }

// TestWatchOverflow floods a ring of one page: records are lost then, and are counted; the counts miss nothing.
func TestWatchOverflow(t *testing.T) {
	const pings = 20_000
	l := newLab(t, lab.Options{})
	p := newProcess("watch", "--netns", c1(l), "--ring", "4096", "-o", "json")
	p.start(t)
	waitUntil(t, "it watches", func() bool { return strings.HasPrefix(p.stderr.String(), "watching netns:") })
	flood := exec.Command("ping", "-q", "-f", "-c", fmt.Sprint(pings), l.RemoteAddr4().String())
	if err := l.Start(lab.Container(1), flood); err != nil {
		t.Fatal(err)
	}
	if err := flood.Wait(); err != nil {
		t.Fatalf("ping -f: %s", err)
	}
	p.signal(t, syscall.SIGINT, 0)
	account := p.stderr.String()
	// Beside the flood, a multicast packet or two may have come or gone.
	var egress, egressMatched, ingress, ingressMatched, lost, counted, seen int
	for pattern, into := range map[string][]any{
		`egress:  (\d+) packets: (\d+) matched, 0 ambiguous,`:        {&egress, &egressMatched},
		`ingress: (\d+) packets: (\d+) matched, 0 ambiguous,`:        {&ingress, &ingressMatched},
		`records lost: (\d+)\n`:                                      {&lost},
		`audit: devices counted (\d+) packets, programs saw (\d+)\n`: {&counted, &seen},
	} {
		found := regexp.MustCompile(pattern).FindStringSubmatch(account)
		if found == nil {
			t.Fatalf("no %q in\n%s", pattern, account)
		}
		for i, v := range into {
			fmt.Sscan(found[i+1], v)
		}
	}
	missing := 0
	for _, found := range regexp.MustCompile(`: (\d+) went unseen\n`).FindAllStringSubmatch(account, -1) {
		n := 0
		fmt.Sscan(found[1], &n)
		missing += n
	}
	if egressMatched+missing < pings || ingressMatched+missing < pings || egress-egressMatched > 20+missing || ingress-ingressMatched > 20+missing {
		t.Errorf("the counts are not complete after %d pings:\n%s", pings, account)
	}
	if lost == 0 || counted-seen > missing {
		t.Errorf("want lost records, and an audit that agrees:\n%s", account)
	}
	for _, line := range scanJSON(t, p.stdout.String()) {
		if line["proto"] == "icmp" && line["status"] != "matched" && missing == 0 {
			t.Errorf("a lost record has spoiled another: %v", line)
		}
	}
}

// TestWatchInterrupt: ^C is how it ends, so that is a success, and the account follows.
func TestWatchInterrupt(t *testing.T) {
	l := newLab(t, lab.Options{})
	p := newProcess("watch", "--netns", c1(l))
	p.start(t)
	waitUntil(t, "it watches", func() bool { return strings.HasPrefix(p.stderr.String(), "watching netns:") })
	left := observe(t, p)
	p.signal(t, syscall.SIGINT, 0)
	if text := p.stderr.String(); !strings.Contains(text, "records lost: 0\naudit: devices counted ") || strings.Contains(text, "tare:") {
		t.Errorf("the account is\n%s", text)
	}
	left.nothing()
}
