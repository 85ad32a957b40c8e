package file

import (
	"context"
	"fmt"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/record"

	"github.com/miekg/dns"
)

func init() {
	record.Describer("file", func(_ context.Context, f any, _ *dns.Msg) record.State {
		file := f.(File)
		state := record.State{Files: map[string]string{}}
		lines := []string{}
		for at, name := range file.Zones.Names {
			zone := file.Zones.Z[name]
			if zone == nil || zone.SOA == nil {
				return record.State{Beyond: "a zone without an SOA record"}
			}
			records := []dns.RR{zone.SOA}
			records = append(records, zone.NS...)
			records = append(records, zone.SIGSOA...)
			records = append(records, zone.SIGNS...)
			for _, elem := range zone.Tree.All() {
				records = append(records, elem.All()...)
			}
			text := []string{}
			for _, one := range records {
				text = append(text, one.String())
			}
			path := fmt.Sprintf("zone%d", at)
			state.Files[path] = strings.Join(text, "\n") + "\n"
			lines = append(lines, fmt.Sprintf("file {FOLDER}/%s %s {", path, name))
			if len(file.Fall.Zones) > 0 {
				lines = append(lines, "fallthrough "+strings.Join(file.Fall.Zones, " "))
			}
			lines = append(lines, "}")
		}
		state.Lines = strings.Join(lines, "\n")
		return state
	})
}
