package body

import (
	"bytes"
	"encoding/json"
	"strings"

	pickd "github.com/pickd/pickd/bindings/go"
)

// answer reads answers of the OpenAI form: usage, and the first token of a stream.
type answer struct {
	status int
	events bool // the answer is a stream of server-sent events
	text   bytes.Buffer
	tokens int
	usage  usage
	failed bool
	ended  bool
}

type usage struct {
	Usage *struct {
		Prompt  *int `json:"prompt_tokens"`
		Output  *int `json:"completion_tokens"`
		Details *struct {
			Cached *int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Choices []struct {
		Text  string `json:"text"`
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
	} `json:"choices"`
}

func (m *answer) BeginAnswer(status int, headers []pickd.Attribute) error {
	m.status = status
	for _, header := range headers {
		if header.Key == "content-type" {
			m.events = strings.HasPrefix(header.Value, "text/event-stream")
		}
	}
	return nil
}

func (m *answer) AddAnswer(piece []byte) Event {
	m.text.Write(piece)
	if !m.events {
		return 0
	}
	var happened Event
	for {
		line, rest, whole := bytes.Cut(m.text.Bytes(), []byte("\n"))
		if !whole {
			return happened
		}
		happened |= m.line(bytes.TrimRight(line, "\r"))
		m.text.Next(m.text.Len() - len(rest))
	}
}

func (m *answer) line(line []byte) Event {
	data, found := bytes.CutPrefix(line, []byte("data:"))
	if !found {
		return 0
	}
	if string(bytes.TrimSpace(data)) == "[DONE]" {
		m.ended = true
		return Ended
	}
	var event usage
	if json.Unmarshal(data, &event) != nil {
		return 0
	}
	if event.Usage != nil {
		m.usage.Usage = event.Usage
	}
	if len(event.Choices) == 0 || event.Choices[0].Text+event.Choices[0].Delta.Content == "" {
		return 0
	}
	m.tokens++
	if m.tokens == 1 {
		return FirstToken | MoreTokens
	}
	return MoreTokens
}

func (m *answer) EndAnswer() {
	if !m.events {
		m.failed = json.Unmarshal(m.text.Bytes(), &m.usage) != nil
	} else {
		m.failed = !m.ended
	}
}

func (m *answer) Report(report *pickd.Report) error {
	switch {
	case m.status >= 500 && m.status != 503 || m.status < 400 && m.failed:
		report.Kind = pickd.Failed
	case m.status >= 400:
		report.Kind = pickd.Cancelled
	default:
		report.Kind = pickd.Done
	}
	known := func(n *int) pickd.Count {
		if n == nil {
			return pickd.Count{}
		}
		return pickd.Tokens(*n)
	}
	if m.tokens > 0 {
		report.OutputTokens = pickd.Tokens(m.tokens)
	}
	if usage := m.usage.Usage; usage != nil {
		report.PromptTokens, report.OutputTokens = known(usage.Prompt), known(usage.Output)
		if usage.Details != nil {
			report.CachedTokens = known(usage.Details.Cached)
		}
	}
	return nil
}
