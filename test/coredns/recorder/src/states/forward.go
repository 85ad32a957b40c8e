package forward

import (
	"context"
	"fmt"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
)

func init() {
	record.Describer("forward", func(_ context.Context, h any, _ *dns.Msg) record.State {
		lines := []string{}
		// A block may have several; each falls through to the next.
		for f, ok := h.(*Forward); ok && f != nil; f, ok = f.Next.(*Forward) {
			lines = append(lines, linesOf(f)...)
		}
		return record.State{Lines: strings.Join(lines, "\n")}
	})
}

func linesOf(f *Forward) []string {
	addresses := []string{}
	for _, p := range f.proxies {
		addresses = append(addresses, strings.Replace(p.Addr(), "[::]", "127.0.0.1", 1))
	}
	lines := []string{
		fmt.Sprintf("forward %s %s {", f.from, strings.Join(addresses, " ")),
		fmt.Sprintf("max_fails %d", f.maxfails),
		"policy " + f.p.String(),
	}
	add := func(is bool, line string) {
		if is {
			lines = append(lines, line)
		}
	}
	add(f.opts.ForceTCP, "force_tcp")
	add(f.opts.PreferUDP, "prefer_udp")
	add(f.nextOnNodata, "next_on_nodata")
	add(f.failfastUnhealthyUpstreams, "failfast_all_unhealthy_upstreams")
	add(f.maxConnectAttemptsSet, fmt.Sprintf("max_connect_attempts %d", f.maxConnectAttempts))
	for word, rcodes := range map[string][]int{"next": f.nextAlternateRcodes, "failover": f.failoverRcodes} {
		for _, rcode := range rcodes {
			lines = append(lines, word+" "+dns.RcodeToString[rcode])
		}
	}
	return append(lines, "}")
}
