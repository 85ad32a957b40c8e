package autopath

import (
	"context"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
)

func init() {
	record.Describer("autopath", func(_ context.Context, h any, _ *dns.Msg) record.State {
		a := h.(*AutoPath)
		state := record.State{Lines: "autopath " + strings.Join(a.Zones, " ") + " {FOLDER}/resolv.conf"}
		if a.searchFunc != nil {
			state.Beyond = "a search function"
		}
		search := []string{}
		for _, name := range a.search {
			if name != "" {
				search = append(search, name)
			}
		}
		state.Files = map[string]string{"resolv.conf": "search " + strings.Join(search, " ") + "\n"}
		return state
	})
}
