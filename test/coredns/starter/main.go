// Command starter starts CoreDNS with one Corefile after another, in one process, and says of each whether it was taken.
//
// Standard input: a line of JSON for each, {"text": …}. Standard output: a line of JSON for each, {"error": …}, empty if it
// serves, and "ended": whether all of it has ended; if not, the process ends. What ends the process instead was no line of it: who reads sees the end, and what stands on standard error.
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

// Longest time for what a Corefile's plugins do at their end: some wait for connections.
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
		// Whoever started this starts another one: nothing of this Corefile may meet the next.
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
