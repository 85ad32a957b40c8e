package rewrite

import (
	"context"
	"strings"

	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
)

func init() {
	record.Describer("rewrite", func(ctx context.Context, h any, _ *dns.Msg) record.State {
		rw := h.(Rewrite)
		state := record.State{Metadata: record.Metadata(ctx, metadata.ValueFuncs(ctx))}
		if rw.RevertPolicy != nil && !rw.DoRevert() {
			state.Beyond = "a policy of reverting that no Corefile has"
		}
		lines := []string{}
		for _, rule := range rw.Rules {
			words, ok := record.Marked(rule)
			if !ok {
				state.Beyond = "a rule made by hand"
				continue
			}
			quoted := []string{"rewrite"}
			for _, word := range words {
				quoted = append(quoted, record.Quote(word))
			}
			lines = append(lines, strings.Join(quoted, " "))
		}
		state.Lines = strings.Join(lines, "\n")
		return state
	})
}
