// Package test replaces the file of this name in CoreDNS's own test directory, so that the servers its tests start are
// ndots processes (NDOTS names the program). CoreDNS itself serves whatever else its Corefiles need, such as zone files.
package test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coredns/caddy"
	_ "github.com/coredns/coredns/core" // Hook in CoreDNS.
	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/core/plugin" // Load all managed plugins in github.com/coredns/coredns.
	"github.com/coredns/coredns/plugin/metrics"
)

// Instance is a running server.
type Instance struct {
	coredns *caddy.Instance
	process *process
}

type process struct {
	command  *exec.Cmd
	output   *output
	corefile string
	ports    []string
	over     chan struct{}
}

type output struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.String()
}

// CoreDNSServer starts a server with this Corefile.
func CoreDNSServer(corefile string) (*Instance, error) {
	used := []string{}
	for _, scheme := range []string{"grpc://", "quic://", "https3://"} {
		if strings.Contains(corefile, scheme) {
			used = append(used, scheme)
		}
	}
	if len(used) > 0 {
		note("CoreDNS", strings.Join(used, " "))
		caddy.Quiet = true
		dnsserver.Quiet = true
		i, err := caddy.Start(NewInput(corefile))
		if err != nil {
			return nil, err
		}
		return &Instance{coredns: i}, nil
	}
	note("ndots", "")
	return startProcess(corefile)
}

func note(who, why string) {
	pcs := callers()
	fmt.Fprintf(os.Stderr, "SERVED %s %s %s\n", pcs, who, why)
}

func startProcess(corefile string) (*Instance, error) {
	// Relative paths are relative to the Corefile.
	folder, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(folder, "Corefile-")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := &process{corefile: file.Name(), output: &output{}, over: make(chan struct{})}
	text := p.withPorts(corefile)
	if err := os.WriteFile(p.corefile, []byte(text), 0o600); err != nil {
		return nil, err
	}
	// CoreDNS allows two processes on one port.
	for _, port := range p.ports {
		if other, ok := running.LoadAndDelete(port); ok {
			_ = other.(*Instance).Stop()
		}
	}
	p.command = exec.Command(os.Getenv("NDOTS"), "serve", "-conf", p.corefile, "-dns.port", "1053")
	p.command.Stdout, p.command.Stderr = p.output, p.output
	// Some tests never stop their server. It ends with this process, which to the kernel means the thread that started it.
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := p.command.Start()
		started <- err
		if err == nil {
			_ = p.command.Wait()
		}
		close(p.over)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	deadline := time.After(20 * time.Second)
	for !strings.Contains(p.output.String(), "\nndots-") {
		select {
		case <-p.over:
			return nil, errors.New(p.output.String())
		case <-deadline:
			_ = p.command.Process.Kill()
			return nil, errors.New("not ready after 20 s: " + p.output.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	i := &Instance{process: p}
	for _, port := range p.ports {
		running.Store(port, i)
	}
	return i, nil
}

var running sync.Map

var keyPort = regexp.MustCompile(`:0\b`)

// withPorts replaces port 0 in server blocks with free ports. Blocks that share a port 0 stay together.
func (p *process) withPorts(corefile string) string {
	// The tests read the metrics address from one of the plugin's variables.
	if strings.Contains(corefile, "prometheus localhost:0") {
		metrics.ListenAddr = "127.0.0.1:" + freePort()
		corefile = strings.ReplaceAll(corefile, "prometheus localhost:0", "prometheus "+metrics.ListenAddr)
	}
	// CoreDNS ignores anything after the name.
	corefile = strings.ReplaceAll(corefile, "erratic .", "erratic")
	lines := strings.Split(corefile, "\n")
	depth := 0
	shared := freePort()
	for at, line := range lines {
		if depth == 0 && strings.Contains(line, "{") {
			port := shared
			found := false
			lines[at] = keyPort.ReplaceAllStringFunc(line, func(string) string {
				found = true
				return ":" + port
			})
			if !found {
				if fixed := regexp.MustCompile(`:(\d+)\b`).FindStringSubmatch(line); fixed != nil {
					port = fixed[1]
				} else {
					port = "1053"
				}
			}
			if !slices.Contains(p.ports, port) {
				p.ports = append(p.ports, port)
			}
		}
		depth += strings.Count(line, "{") - strings.Count(line, "}")
	}
	return strings.Join(lines, "\n")
}

func freePort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// Stop ends the server.
func (i *Instance) Stop() error {
	if i.coredns != nil {
		return i.coredns.Stop()
	}
	select {
	case <-i.process.over:
		return nil
	default:
	}
	_ = i.process.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-i.process.over:
	case <-time.After(15 * time.Second):
		_ = i.process.command.Process.Kill()
	}
	// CoreDNS writes to the log of the test.
	return nil
}

// ShutdownCallbacks are run when the server ends.
func (i *Instance) ShutdownCallbacks() []error { return nil }

// Servers returns its listeners.
func (i *Instance) Servers() []caddy.ServerListener {
	if i.coredns != nil {
		return i.coredns.Servers()
	}
	return nil
}

// Restart loads another Corefile.
func (i *Instance) Restart(input caddy.Input) (*Instance, error) {
	if i.coredns != nil {
		next, err := i.coredns.Restart(input)
		return &Instance{coredns: next}, err
	}
	p := i.process
	ports := p.ports
	p.ports = nil
	text := p.withPorts(string(input.Body()))
	// Reuse the same ports, as far as there are enough.
	for at, port := range p.ports {
		if at < len(ports) {
			text = strings.Replace(text, ":"+port, ":"+ports[at], 1)
			p.ports[at] = ports[at]
		}
	}
	if err := os.WriteFile(p.corefile, []byte(text), 0o600); err != nil {
		return nil, err
	}
	before := len(p.output.String())
	_ = p.command.Process.Signal(syscall.SIGUSR1)
	deadline := time.After(20 * time.Second)
	for {
		news := p.output.String()[before:]
		if strings.Contains(news, "Reloading complete") {
			return i, nil
		}
		if strings.Contains(news, "Restart failed") || strings.Contains(news, "[ERROR] ") {
			return i, errors.New(news)
		}
		select {
		case <-p.over:
			return i, errors.New(p.output.String())
		case <-deadline:
			return i, errors.New("not reloaded after 20 s: " + news)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// CoreDNSServerStop stops a server.
func CoreDNSServerStop(i *Instance) { i.Stop() }

// CoreDNSServerPorts returns the addresses of the nth server block.
func CoreDNSServerPorts(i *Instance, k int) (udp, tcp string) {
	if i.coredns == nil {
		if k >= len(i.process.ports) {
			return "", ""
		}
		address := "[::1]:" + i.process.ports[k]
		if text, _ := os.ReadFile(i.process.corefile); bytes.Contains(text, []byte("bind 127.0.0.1")) {
			address = "127.0.0.1:" + i.process.ports[k]
		}
		return address, address
	}
	srvs := i.Servers()
	if len(srvs) < k+1 {
		return "", ""
	}
	if u := srvs[k].LocalAddr(); u != nil {
		udp = u.String()
	}
	if t := srvs[k].Addr(); t != nil {
		tcp = t.String()
	}
	return
}

// CoreDNSServerAndPorts starts a server and returns the addresses of its first server block.
func CoreDNSServerAndPorts(corefile string) (i *Instance, udp, tcp string, err error) {
	i, err = CoreDNSServer(corefile)
	if err != nil {
		return nil, "", "", err
	}
	udp, tcp = CoreDNSServerPorts(i, 0)
	return i, udp, tcp, nil
}

// Input implements the caddy.Input interface and acts as an easy way to use a string as a Corefile.
type Input struct{ corefile []byte }

// NewInput returns a pointer to Input, containing the corefile string as input.
func NewInput(corefile string) *Input { return &Input{corefile: []byte(corefile)} }

// Body implements the Input interface.
func (i *Input) Body() []byte { return i.corefile }

// Path implements the Input interface.
func (i *Input) Path() string { return "Corefile" }

// ServerType implements the Input interface.
func (i *Input) ServerType() string { return "dns" }
