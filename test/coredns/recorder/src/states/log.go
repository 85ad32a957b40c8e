package log

import (
	"context"
	"fmt"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
)

func init() {
	record.Describer("log", func(_ context.Context, h any, _ *dns.Msg) record.State {
		var lines strings.Builder
		for _, rule := range h.(Logger).Rules {
			fmt.Fprintf(&lines, "log %s %s", rule.NameScope, record.Quote(rule.Format))
			if len(rule.Class) > 0 {
				lines.WriteString(" {\n")
				for class := range rule.Class {
					fmt.Fprintf(&lines, "class %s\n", class)
				}
				lines.WriteString("}")
			}
			lines.WriteString("\n")
		}
		return record.State{Lines: lines.String()}
	})
}
