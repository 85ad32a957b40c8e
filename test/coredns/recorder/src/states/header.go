package header

import (
	"context"
	"fmt"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
)

func init() {
	record.Describer("header", func(_ context.Context, h any, _ *dns.Msg) record.State {
		header := h.(Header)
		var lines strings.Builder
		lines.WriteString("header {\n")
		print := func(part string, rules []Rule) {
			for _, rule := range rules {
				action := "clear"
				if rule.State {
					action = "set"
				}
				fmt.Fprintf(&lines, "%s %s %s\n", part, action, rule.Flag)
			}
		}
		print("response", header.ResponseRules)
		print("query", header.QueryRules)
		lines.WriteString("}")
		return record.State{Lines: lines.String()}
	})
}
