package local

import (
	"context"

	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
)

func init() {
	record.Describer("local", func(_ context.Context, h any, _ *dns.Msg) record.State {
		lines := "local"
		if l, ok := h.(Local); ok && l.disableLocalhostPrefix {
			lines = "local {\nlocalhost_prefix off\n}"
		}
		if l, ok := h.(*Local); ok && l.disableLocalhostPrefix {
			lines = "local {\nlocalhost_prefix off\n}"
		}
		return record.State{Lines: lines}
	})
}
