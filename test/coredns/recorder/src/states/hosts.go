package hosts

import (
	"context"
	"fmt"
	"net"
	"sort"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
)

func init() {
	record.Describer("hosts", func(_ context.Context, h any, _ *dns.Msg) record.State {
		hosts := h.(Hosts)
		lines := []string{"hosts {FOLDER}/hosts " + strings.Join(hosts.Origins, " ") + " {"}
		lines = append(lines, fmt.Sprintf("ttl %d", hosts.options.ttl))
		if !hosts.options.autoReverse {
			lines = append(lines, "no_reverse")
		}
		if len(hosts.Fall.Zones) > 0 {
			lines = append(lines, "fallthrough "+strings.Join(hosts.Fall.Zones, " "))
		}
		state := record.State{}
		if hosts.fallthroughUnsupported {
			lines = append(lines, "fallthrough_unsupported")
		}
		lines = append(lines, "}")
		file := []string{}
		for _, m := range []*Map{hosts.hmap, hosts.inline} {
			if m == nil {
				continue
			}
			seen := map[string]bool{}
			for _, names := range []map[string][]net.IP{m.name4, m.name6, m.wildName4, m.wildName6} {
				for name, addresses := range names {
					for _, address := range addresses {
						line := address.String() + " " + name
						if !seen[line] {
							seen[line] = true
							file = append(file, line)
						}
					}
				}
			}
			for address, names := range m.addr {
				for _, name := range names {
					if line := address + " " + name; !seen[line] {
						seen[line] = true
						file = append(file, line)
					}
				}
			}
		}
		sort.Strings(file)
		state.Files = map[string]string{"hosts": strings.Join(file, "\n") + "\n"}
		state.Lines = strings.Join(lines, "\n")
		return state
	})
}
