// Reading the script into requests and reports.

package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	pickd "github.com/pickd/pickd/bindings/go"
)

// A step is a pick, or with a kind a report.
type step struct {
	name     string
	request  pickd.Request
	kind     pickd.ReportKind
	kindName string
	report   pickd.Report
}

var kinds = []string{"", "first_token", "progress", "done", "failed", "fallback", "cancelled"}

func readScript(path string) ([]step, error) {
	script, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var steps []step
	for _, line := range strings.Split(string(script), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		before, _, _ := strings.Cut(line, "->")
		words := strings.Fields(before)
		if len(words) == 0 {
			continue
		}
		s := step{name: words[1]}
		fields := words[2:]
		if words[0] == "report" {
			s.kindName, fields = words[2], words[3:]
			s.kind = pickd.ReportKind(slices.Index(kinds, s.kindName))
			s.report.Kind = s.kind
		}
		for _, field := range fields {
			key, value, _ := strings.Cut(field, "=")
			read := readField
			if s.kind != 0 {
				read = readReportField
			}
			if err := read(&s, key, value); err != nil {
				return nil, fmt.Errorf("%s: %w", line, err)
			}
		}
		steps = append(steps, s)
	}
	return steps, nil
}

func readReportField(s *step, key, value string) error {
	if key == "endpoint" {
		s.report.Endpoint = value
		return nil
	}
	n, err := strconv.Atoi(value)
	switch key {
	case "prompt":
		s.report.PromptTokens = pickd.Tokens(n)
	case "cached":
		s.report.CachedTokens = pickd.Tokens(n)
	case "output":
		s.report.OutputTokens = pickd.Tokens(n)
	default:
		return fmt.Errorf("no field %s", key)
	}
	return err
}

func readField(s *step, key, value string) error {
	r := &s.request
	texts := map[string]*string{"model": &r.Model, "adapter": &r.Adapter, "salt": &r.Salt, "session": &r.SessionID,
		"fairness": &r.FairnessID, "request": &r.RequestID}
	numbers := map[string]*int{"prompt_tokens": &r.PromptTokens, "expected": &r.ExpectedOutputTokens,
		"endpoints_max": &r.EndpointsMax, "priority": &r.Priority}
	if text, ok := texts[key]; ok {
		*text = value
		return nil
	}
	if number, ok := numbers[key]; ok {
		var err error
		*number, err = strconv.Atoi(value)
		return err
	}
	first, second, _ := strings.Cut(value, ":")
	switch key {
	case "text":
		return readText(r, first, second)
	case "ids":
		random, count := made(first), number32(second)
		r.TokenIDs = make([]uint32, count)
		for at := range r.TokenIDs {
			r.TokenIDs[at] = random() >> 8
		}
	case "extra":
		random, digest := made(second), make([]byte, 32)
		for at := range digest {
			digest[at] = byte(random() >> 16)
		}
		r.Extras = append(r.Extras, pickd.Extra{Offset: int(number32(first)), Digest: digest})
	case "subset":
		r.Subset = []string{}
		if value != "" {
			r.Subset = strings.Split(value, ",")
		}
	case "attribute":
		r.Attributes = append(r.Attributes, pickd.Attribute{Key: first, Value: second})
	case "slo_ttft_ms", "slo_itl_ms":
		ms, err := strconv.ParseFloat(value, 64)
		if key == "slo_ttft_ms" {
			r.SLOTTFT = time.Duration(ms * float64(time.Millisecond))
		} else {
			r.SLOITL = time.Duration(ms * float64(time.Millisecond))
		}
		return err
	case "stream":
		r.Stream = true
	case "dry_run":
		r.DryRun = true
	default:
		return fmt.Errorf("no field %s", key)
	}
	return nil
}

func readText(r *pickd.Request, seed, rest string) error {
	size, cuts, cut := strings.Cut(rest, ":")
	random, text := made(seed), make([]byte, number32(size))
	for at := range text {
		text[at] = byte('a' + (random()>>16)%26)
	}
	begin := 0
	if cut {
		for _, place := range strings.Split(cuts, ",") {
			end := int(number32(place))
			r.Text = append(r.Text, string(text[begin:end]))
			begin = end
		}
	}
	r.Text = append(r.Text, string(text[begin:]))
	return nil
}

// made gives the numbers that a seed makes.
func made(seed string) func() uint32 {
	x := number32(seed)
	return func() uint32 {
		x = x*1103515245 + 12345
		return x
	}
}

// number32 of a script that tests check: what is no number is 0.
func number32(word string) uint32 {
	n, _ := strconv.ParseUint(word, 10, 32)
	return uint32(n)
}
