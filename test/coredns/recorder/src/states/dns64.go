package dns64

import (
	"context"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
)

func init() {
	record.Describer("dns64", func(_ context.Context, h any, _ *dns.Msg) record.State {
		d := h.(*DNS64)
		lines := []string{"dns64 {", "prefix " + d.Prefix.String()}
		if d.TranslateAll {
			lines = append(lines, "translate_all")
		}
		if d.AllowIPv4 {
			lines = append(lines, "allow_ipv4")
		}
		lines = append(lines, "}")
		return record.State{Lines: strings.Join(lines, "\n")}
	})
}
