// Reports what Go's regexp makes of patterns, which is what CoreDNS makes of every pattern in a Corefile.
//
// Standard input is [{"pattern": "…", "texts": ["…"]}]. Standard output is the same list as [{"error": "…"}] or [{"groups":
// N, "names": ["", "…"], "matches": [[begin, end, …] or null, one per text]}]. Positions count UTF-16 units, as in
// JavaScript; -1 is a group that did not match. With the argument "time", it is [nanoseconds per text] for MatchString.
package main

import (
	"encoding/json"
	"log"
	"os"
	"regexp"
	"time"
)

type question struct {
	Pattern string   `json:"pattern"`
	Texts   []string `json:"texts"`
}

type answer struct {
	Error   string   `json:"error,omitempty"`
	Groups  int      `json:"groups"`
	Names   []string `json:"names,omitempty"`
	Matches [][]int  `json:"matches,omitempty"`
}

func main() {
	var questions []question
	if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil {
		log.Fatal(err)
	}
	if len(os.Args) > 1 && os.Args[1] == "time" {
		times := make([]float64, len(questions))
		for i, q := range questions {
			times[i] = nanoseconds(q)
		}
		if err := json.NewEncoder(os.Stdout).Encode(times); err != nil {
			log.Fatal(err)
		}
		return
	}
	answers := make([]answer, len(questions))
	for i, q := range questions {
		answers[i] = ask(q)
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		log.Fatal(err)
	}
}

func ask(q question) answer {
	expression, err := regexp.Compile(q.Pattern)
	if err != nil {
		return answer{Error: err.Error()}
	}
	a := answer{Groups: expression.NumSubexp(), Names: expression.SubexpNames()}
	for _, text := range q.Texts {
		places := expression.FindStringSubmatchIndex(text)
		for i, place := range places {
			if place > 0 {
				places[i] = units(text[:place])
			}
		}
		a.Matches = append(a.Matches, places)
	}
	return a
}

// Counts a text's UTF-16 units.
func units(text string) int {
	count := 0
	for _, r := range text {
		count++
		if r > 0xffff {
			count++
		}
	}
	return count
}

// Returns the minimum over several rounds through all texts.
func nanoseconds(q question) float64 {
	expression := regexp.MustCompile(q.Pattern)
	least := 1e12
	for round := 0; round < 50; round++ {
		began := time.Now()
		for _, text := range q.Texts {
			expression.MatchString(text)
		}
		least = min(least, float64(time.Since(began).Nanoseconds())/float64(len(q.Texts)))
	}
	return least
}
