// Writes the rules that kube-proxy generates for clusters. Reads one JSON object per line from standard input and writes
// one per line. iptables mode is the real proxier with an iptables that only records; nftables mode is the real proxier
// with the nft in PATH.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/proxy"
	"k8s.io/kubernetes/pkg/proxy/iptables"
	"k8s.io/kubernetes/pkg/proxy/nftables"
	proxyutil "k8s.io/kubernetes/pkg/proxy/util"
	utiliptables "k8s.io/kubernetes/pkg/util/iptables"
)

// cluster is one line of input.
type cluster struct {
	Mode               string                    `json:"mode"`
	Family             v1.IPFamily               `json:"family"`
	Node               string                    `json:"node"`
	NodeIP             string                    `json:"nodeIP"`
	Zone               string                    `json:"zone"`
	ClusterCIDR        string                    `json:"clusterCIDR"`
	MasqueradeAll      bool                      `json:"masqueradeAll"`
	LocalhostNodePorts bool                      `json:"localhostNodePorts"`
	NodePortAddresses  []string                  `json:"nodePortAddresses"`
	Services           []v1.Service              `json:"services"`
	Slices             []discovery.EndpointSlice `json:"slices"`
}

// memory is an iptables that records its input.
type memory struct {
	utiliptables.Interface
	ipv6     bool
	restored bytes.Buffer
	jumps    []string
}

func (m *memory) EnsureChain(utiliptables.Table, utiliptables.Chain) (bool, error) { return true, nil }
func (m *memory) EnsureRule(_ utiliptables.RulePosition, table utiliptables.Table, chain utiliptables.Chain, args ...string) (bool, error) {
	line, _ := json.Marshal(args)
	m.jumps = append(m.jumps, fmt.Sprintf("%s %s %s", table, chain, line))
	return true, nil
}
func (m *memory) IsIPv6() bool { return m.ipv6 }
func (m *memory) SaveInto(utiliptables.Table, *bytes.Buffer) error { return nil }
func (m *memory) RestoreAll(data []byte, _ utiliptables.FlushFlag, _ utiliptables.RestoreCountersFlag) error {
	m.restored.Reset()
	m.restored.Write(data)
	return nil
}
func (m *memory) Monitor(utiliptables.Chain, []utiliptables.Table, func(), time.Duration, <-chan struct{}) {}
func (m *memory) HasRandomFully() bool { return true }

// sysctl accepts everything, and does not touch the kernel.
type sysctl struct{}

func (sysctl) GetSysctl(string) (int, error) { return 0, nil }
func (sysctl) SetSysctl(string, int) error   { return nil }

func main() {
	klog.SetOutput(os.Stderr)
	klog.LogToStderr(false)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<30)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for in.Scan() {
		var c cluster
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		text, jumps, took, err := rules(&c)
		failed := ""
		if err != nil {
			failed = err.Error()
		}
		out.Encode(map[string]any{"text": text, "jumps": jumps, "tookMs": took, "error": failed})
	}
}

func rules(c *cluster) (text string, jumps []string, tookMs float64, err error) {
	ctx := context.Background()
	detector := proxyutil.NewNoOpLocalDetector()
	if c.ClusterCIDR != "" {
		detector = proxyutil.NewDetectLocalByCIDR(c.ClusterCIDR)
	}
	var p proxy.Provider
	fake := &memory{ipv6: c.Family == v1.IPv6Protocol}
	// The nft in PATH (nft.sh) records its input there. A table from the previous cluster would be read back.
	log := os.Getenv("NFT_LOG")
	if c.Mode == "nftables" {
		exec.Command("nft", "flush", "ruleset").Run()
		p, err = nftables.NewProxier(ctx, c.Family, time.Hour, time.Hour, c.MasqueradeAll, 14, detector, c.Node,
			net.ParseIP(c.NodeIP), nil, nil, c.NodePortAddresses, false)
	} else {
		p, err = iptables.NewProxier(ctx, c.Family, fake, sysctl{}, time.Hour, time.Hour, c.MasqueradeAll, c.LocalhostNodePorts, 14,
			detector, c.Node, net.ParseIP(c.NodeIP), nil, nil, c.NodePortAddresses, false)
	}
	if err != nil {
		return "", nil, 0, err
	}
	if topology, ok := p.(interface{ OnTopologyChange(map[string]string) }); ok && c.Zone != "" {
		topology.OnTopologyChange(map[string]string{v1.LabelTopologyZone: c.Zone})
	}
	if log != "" {
		os.Truncate(log, 0)
	}
	start := time.Now()
	for i := range c.Services {
		p.OnServiceAdd(&c.Services[i])
	}
	for i := range c.Slices {
		p.OnEndpointSliceAdd(&c.Slices[i])
	}
	p.OnServiceSynced()
	p.OnEndpointSlicesSynced()
	took := float64(time.Since(start).Microseconds()) / 1000
	if c.Mode == "nftables" {
		text, err := os.ReadFile(log)
		return string(text), nil, took, err
	}
	return fake.restored.String(), fake.jumps, took, nil
}
