package test

import (
	"regexp"
	"runtime"
)

var testFunction = regexp.MustCompile(`\.(Test[A-Za-z0-9_]*)(\.func.*)?$`)

// callers returns the running test.
func callers() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		if found := testFunction.FindStringSubmatch(frame.Function); found != nil {
			return found[1]
		}
		if !more {
			return "?"
		}
	}
}
