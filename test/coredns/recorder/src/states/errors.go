package errors

import (
	"context"
	"fmt"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
)

func init() {
	record.Describer("errors", func(_ context.Context, h any, _ *dns.Msg) record.State {
		e, ok := h.(*errorHandler)
		if !ok {
			return record.State{Lines: "errors"}
		}
		var lines strings.Builder
		lines.WriteString("errors {\n")
		for _, p := range e.patterns {
			fmt.Fprintf(&lines, "consolidate %s %s\n", p.period, record.Quote(p.pattern.String()))
		}
		lines.WriteString("}")
		return record.State{Lines: lines.String()}
	})
}
