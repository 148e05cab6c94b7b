package load

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"tare/bench/arm"
)

func init() {
	w := Workload{
		Name: "http", Summary: "HTTP requests with wrk to nginx, over one kept-alive connection, with small replies",
		Unit: RequestsPerSecond, Tools: []string{"wrk", "nginx"}, Check: needTools("wrk", "nginx"),
	}
	w.Start = func(ctx context.Context, link *arm.Link, p Params) (Session, error) {
		if err := w.Check(ctx); err != nil {
			return nil, err
		}
		p, err := p.withDefaults(w)
		if err != nil {
			return nil, err
		}
		return startHTTP(ctx, link, p)
	}
	register(80, w)
}

// nginxConfiguration is for one process, which logs nothing and touches no file but its pid.
const nginxConfiguration = `daemon off;
master_process off;
user root;
pid %[1]s/nginx.pid;
error_log stderr;
events { worker_connections 64; }
http {
	access_log off;
	keepalive_requests 1000000000;
	keepalive_timeout 1h;
	client_body_temp_path %[1]s/nginx-body;
	proxy_temp_path %[1]s/nginx-proxy;
	fastcgi_temp_path %[1]s/nginx-fastcgi;
	uwsgi_temp_path %[1]s/nginx-uwsgi;
	scgi_temp_path %[1]s/nginx-scgi;
	server {
		listen %[2]s;
		location / { default_type text/plain; return 200 "%[3]s"; }
	}
}
`

const httpReply = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

type httpSession struct {
	link   *arm.Link
	params Params
	server *server
	script string
}

func startHTTP(ctx context.Context, link *arm.Link, p Params) (Session, error) {
	configuration := filepath.Join(link.Dir, "nginx.conf")
	listen := netip.AddrPortFrom(link.ListenAddr, p.Port).String()
	err := os.WriteFile(configuration, fmt.Appendf(nil, nginxConfiguration, link.Dir, listen, httpReply), 0o644)
	if err != nil {
		return nil, fmt.Errorf("writing nginx's configuration: %w", err)
	}
	script := filepath.Join(link.Dir, "wrk.lua")
	if err := os.WriteFile(script, []byte(wrkScript), 0o644); err != nil {
		return nil, fmt.Errorf("writing wrk's script: %w", err)
	}
	s, err := startServer(ctx, link.Server, "tcp", p.Port, "nginx", "-p", link.Dir, "-c", configuration, "-e", "stderr")
	if err != nil {
		return nil, err
	}
	return &httpSession{link, p, s, script}, nil
}

func (s *httpSession) Close() error {
	s.server.close()
	return nil
}

// Warm does nothing: wrk's shortest run is a second, as long as a round, and a connection is made in each.
func (s *httpSession) Warm(ctx context.Context) error { return ctx.Err() }

// Round runs wrk for d, up to whole seconds.
func (s *httpSession) Round(ctx context.Context, d time.Duration) (Sample, error) {
	seconds := int(max(1, math.Ceil(d.Seconds())))
	target := netip.AddrPortFrom(s.link.ServerAddr, s.link.ServerPort(s.params.Port))
	reading := readHost(s.link, s.server)
	done, err := runClient(ctx, s.link, s.server, time.Duration(seconds)*time.Second, 0, "wrk",
		"--threads=1", "--connections=1", fmt.Sprintf("--duration=%ds", seconds), "--latency", "--script="+s.script, "http://"+target.String()+"/")
	if err != nil {
		return Sample{}, err
	}
	host := reading.since()
	host.Client = usageOf(done)
	result, err := parseWrk(done.output)
	if err != nil {
		return Sample{}, fmt.Errorf("reading wrk's output: %w", err)
	}
	return result.sample(host), nil
}
