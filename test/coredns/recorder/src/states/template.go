package template

import (
	"context"
	"fmt"
	"strings"
	gotmpl "text/template"

	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
)

func init() {
	record.Describer("template", func(ctx context.Context, h any, _ *dns.Msg) record.State {
		handler := h.(Handler)
		state := record.State{Metadata: record.Metadata(ctx, metadata.ValueFuncs(ctx))}
		var lines strings.Builder
		for _, t := range handler.Templates {
			class, ok := dns.ClassToString[t.qclass]
			if !ok {
				class = fmt.Sprintf("CLASS%d", t.qclass)
			}
			fmt.Fprintf(&lines, "template %s %s %s {\n", class, dns.TypeToString[t.qtype], strings.Join(t.zones, " "))
			for _, regex := range t.regex {
				fmt.Fprintf(&lines, "match %s\n", record.Quote(regex.String()))
			}
			print := func(section string, all []*gotmpl.Template) {
				for _, each := range all {
					text := ""
					if each.Tree != nil {
						text = each.Root.String()
					}
					fmt.Fprintf(&lines, "%s %s\n", section, record.Quote(text))
				}
			}
			print("answer", t.answer)
			print("additional", t.additional)
			print("authority", t.authority)
			if t.rcode != 0 {
				fmt.Fprintf(&lines, "rcode %s\n", dns.RcodeToString[t.rcode])
			}
			if t.ederror != nil {
				fmt.Fprintf(&lines, "ederror %d %s\n", t.ederror.code, record.Quote(t.ederror.reason))
			}
			if len(t.fall.Zones) > 0 {
				fmt.Fprintf(&lines, "fallthrough %s\n", strings.Join(t.fall.Zones, " "))
			}
			lines.WriteString("}\n")
		}
		state.Lines = lines.String()
		return state
	})
}
