// Command starter starts CoreDNS with one Corefile after another in a single process, and reports whether each was
// accepted.
//
// Standard input is a line of JSON per Corefile, {"text": …}. Standard output is a line of JSON for each: {"error": …},
// empty if it serves, and "ended", which tells whether all of it has ended; if not, the process exits. If a plugin exits
// the process instead, there is no such line, only the end of the output and the text on standard error.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/core/plugin"
)

type question struct {
	Text string `json:"text"`
}

type answer struct {
	Error string `json:"error"`
	Ended bool   `json:"ended"`
}

// The maximum time for a Corefile's plugins to shut down; some wait for connections.
const patience = 500 * time.Millisecond

func main() {
	caddy.Quiet = true
	dnsserver.Quiet = true
	log.SetOutput(os.Stderr)
	in := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	// Some plugins print.
	os.Stdout = os.Stderr
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked question
		if err := json.Unmarshal(line, &asked); err != nil {
			log.Fatal(err)
		}
		said := start(asked.Text)
		if err := out.Encode(said); err != nil {
			log.Fatal(err)
		}
		// The caller starts another process, so that nothing of this Corefile affects the next.
		if !said.Ended {
			return
		}
	}
}

func start(text string) (said answer) {
	defer func() {
		if failure := recover(); failure != nil {
			said = answer{Error: fmt.Sprintf("panic: %v", failure)}
		}
	}()
	instance, err := caddy.Start(caddy.CaddyfileInput{Contents: []byte(text), Filepath: "Corefile", ServerTypeName: "dns"})
	if err != nil {
		said.Error = err.Error()
	}
	ended := make(chan struct{})
	go func() {
		instance.ShutdownCallbacks()
		instance.Stop()
		close(ended)
	}()
	select {
	case <-ended:
		said.Ended = true
	case <-time.After(patience):
	}
	return said
}
