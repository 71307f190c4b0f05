// What comes out of libpickd-body here; its own rules are tested in tests/libbody.

package body_test

import (
	"errors"
	"strings"
	"testing"

	pickd "github.com/pickd/pickd/bindings/go"
	"github.com/pickd/pickd/gateways/go-extproc/internal/body"
)

func reader(t *testing.T, library *body.Library) body.Reader {
	t.Helper()
	r, err := library.Reader()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func library(t *testing.T) *body.Library {
	t.Helper()
	l, err := body.NewLibrary(100_000)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// read reads a body in pieces of a size.
func read(t *testing.T, r body.Reader, path, text string, size int, headers ...pickd.Attribute) (pickd.Request, error) {
	t.Helper()
	if err := r.Begin(path, headers); err != nil {
		t.Fatal(err)
	}
	for text != "" {
		piece := text[:min(size, len(text))]
		text = text[len(piece):]
		if err := r.Add([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	ended := r.End()
	var request pickd.Request
	if err := r.Request(&request); err != nil {
		t.Fatal(err)
	}
	request.Model = strings.Clone(request.Model)
	request.SessionID, request.FairnessID = strings.Clone(request.SessionID), strings.Clone(request.FairnessID)
	request.Text = []string{strings.Join(request.Text, "")}
	return request, ended
}

func TestABodyAndItsHeadersAreReadInPiecesOfAnySize(t *testing.T) {
	l := library(t)
	r := reader(t, l)
	defer r.Release()
	const text = `{"model": "m", "stream": true, "messages": [{"role": "system", "content": "You help."},
		{"role": "user", "content": [{"type": "text", "text": "What is it?"},
			{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}]}`
	headers := []pickd.Attribute{{Key: "x-session-id", Value: "s"}, {Key: "cookie", Value: "no"},
		{Key: "x-gateway-inference-fairness-id", Value: "f"}}
	var first pickd.Request
	for _, size := range []int{1000, 1, 17} {
		request, err := read(t, r, "/v1/chat/completions?x=1", text, size, headers...)
		if err != nil || request.Model != "m" || !request.Stream || !request.Media || request.SessionID != "s" || request.FairnessID != "f" ||
			len(request.Text[0]) < 4*576 || !strings.Contains(request.Text[0], "You help.") {
			t.Fatalf("%+v, %v", request, err)
		}
		if size == 1000 {
			first = request
		} else if request.Text[0] != first.Text[0] {
			t.Errorf("in pieces of %d bytes the prompt is another", size)
		}
	}
}

func TestTokenIDsAreReadAsTheyAre(t *testing.T) {
	r := reader(t, library(t))
	defer r.Release()
	request, err := read(t, r, "/v1/completions", `{"model": "m", "prompt": [1, 2, 70000]}`, 9)
	if err != nil || len(request.TokenIDs) != 3 || request.TokenIDs[2] != 70000 || request.Media {
		t.Errorf("%+v, %v", request, err)
	}
}

func TestWhatCannotBeReadSaysWhyAndTheReaderGoesOn(t *testing.T) {
	l := library(t)
	r := reader(t, l)
	for _, text := range []string{"", "{", "[]", "\xff", `{"model": 7}`} {
		if request, err := read(t, r, "/v1/completions", text, 100); err == nil || request.Text[0] != "" {
			t.Errorf("%q: %+v, %v", text, request, err)
		}
	}
	if err := r.Begin("/v1/completions", nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Add(make([]byte, 100_001)); !errors.Is(err, body.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	r.Release()
	again := reader(t, l) // the same one
	defer again.Release()
	if request, err := read(t, again, "/v1/completions", `{"model": "m", "prompt": "p"}`, 100); err != nil || request.Model != "m" {
		t.Errorf("%+v, %v", request, err)
	}
	var page strings.Builder
	l.WriteMetrics(&page)
	if !strings.Contains(page.String(), "# TYPE pickd_extproc_bodies") {
		t.Errorf("the counters are\n%s", page.String())
	}
}

func TestAnAnswerTellsItsFirstTokenAndItsUsageHoweverItIsCut(t *testing.T) {
	const text = "data: {\"choices\": [{\"delta\": {\"role\": \"assistant\"}}]}\r\n\r\n" +
		"data: {\"choices\": [{\"delta\": {\"content\": \"It\"}}]}\r\n\r\n" +
		"data: {\"choices\": [{\"delta\": {\"content\": \" is\"}}]}\r\n\r\n" +
		"data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 9, \"completion_tokens\": 2}}\r\n\r\ndata: [DONE]\r\n\r\n"
	r := reader(t, library(t))
	defer r.Release()
	for _, size := range []int{1, 7, 1000} {
		read(t, r, "/v1/chat/completions", `{"model": "m", "stream": true, "messages": [{"role": "user", "content": "?"}]}`, 99)
		err := r.BeginAnswer(200, []pickd.Attribute{{Key: "content-type", Value: "text/event-stream; charset=utf-8"}})
		if err != nil {
			t.Fatal(err)
		}
		firsts, happened := 0, body.Event(0)
		for rest := text; rest != ""; {
			piece := rest[:min(size, len(rest))]
			rest = rest[len(piece):]
			event := r.AddAnswer([]byte(piece))
			happened |= event
			if event&body.FirstToken != 0 {
				firsts++
			}
		}
		r.EndAnswer()
		var report pickd.Report
		if err := r.Report(&report); err != nil {
			t.Fatal(err)
		}
		output, _ := report.OutputTokens.Get()
		if prompt, _ := report.PromptTokens.Get(); firsts != 1 || happened&body.Ended == 0 || report.Kind != pickd.Done ||
			prompt != 9 || output != 2 {
			t.Errorf("in pieces of %d bytes: %d first tokens, %v, %+v", size, firsts, happened, report)
		}
	}
}
