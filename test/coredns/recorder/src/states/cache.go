package cache

import (
	"context"
	"fmt"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
)

func init() {
	record.Describer("cache", func(_ context.Context, h any, _ *dns.Msg) record.State {
		c := h.(*Cache)
		var lines strings.Builder
		zones := []string{}
		for _, zone := range c.Zones {
			if zone == "" {
				zone = "."
			}
			zones = append(zones, zone)
		}
		fmt.Fprintf(&lines, "cache %s {\n", strings.Join(zones, " "))
		fmt.Fprintf(&lines, "success %d %d %d\n", c.pcap, int(c.pttl.Seconds()), int(c.minpttl.Seconds()))
		fmt.Fprintf(&lines, "denial %d %d %d\n", c.ncap, int(c.nttl.Seconds()), int(c.minnttl.Seconds()))
		fmt.Fprintf(&lines, "servfail %s\n", c.failttl)
		if c.prefetch > 0 {
			fmt.Fprintf(&lines, "prefetch %d %s %d%%\n", c.prefetch, c.duration, c.percentage)
		}
		if c.staleUpTo > 0 {
			mode := "immediate"
			if c.verifyStale {
				mode = "verify"
			}
			fmt.Fprintf(&lines, "serve_stale %s %s", c.staleUpTo, mode)
			if c.verifyStale && c.verifyStaleTimeout+c.staleTTL+c.staleRecheck > 0 {
				fmt.Fprintf(&lines, " %s", c.verifyStaleTimeout)
			}
			if c.staleTTL+c.staleRecheck > 0 {
				fmt.Fprintf(&lines, " %s", c.staleTTL)
			}
			if c.staleRecheck > 0 {
				fmt.Fprintf(&lines, " %s", c.staleRecheck)
			}
			lines.WriteString("\n")
			if c.preferPositive {
				lines.WriteString("serve_stale_policy prefer_positive\n")
			}
		}
		if c.keepttl {
			lines.WriteString("keepttl\n")
		}
		lines.WriteString("}")
		state := record.State{Lines: lines.String(), Now: record.Millis(c.now())}
		if c.prefetch > 0 && (c.percentage < 10 || c.percentage > 90) {
			state.Beyond = "a percentage of prefetch that no Corefile may have"
		}
		return state
	})
}
