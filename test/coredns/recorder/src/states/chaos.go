package chaos

import (
	"context"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
)

func init() {
	record.Describer("chaos", func(_ context.Context, h any, _ *dns.Msg) record.State {
		c := h.(Chaos)
		line := "chaos " + record.Quote(c.Version)
		for _, author := range c.Authors {
			line += " " + record.Quote(author)
		}
		return record.State{Lines: strings.TrimSpace(line)}
	})
}
