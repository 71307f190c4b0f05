package body

import (
	"bytes"
	"encoding/json"
	"strings"

	pickd "github.com/pickd/pickd/bindings/go"
)

// minimal reads with Go's own JSON reader what completions and chat completions have in common: the
// whole body is the prompt but for its first fields.
type minimal struct {
	bytesMax int
	path     string
	headers  []pickd.Attribute
	body     bytes.Buffer
	request  struct {
		Model     string          `json:"model"`
		Prompt    string          `json:"prompt"`
		Messages  json.RawMessage `json:"messages"`
		Stream    bool            `json:"stream"`
		MaxTokens int             `json:"max_tokens"`
		CacheSalt string          `json:"cache_salt"`
	}

	status int
	events bool // the answer is a stream of server-sent events
	answer bytes.Buffer
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

// Minimal makes readers that need no library.
func Minimal(bytesMax int) New {
	return func() (Reader, error) { return &minimal{bytesMax: bytesMax}, nil }
}

func (m *minimal) Begin(path string, headers []pickd.Attribute) error {
	*m = minimal{bytesMax: m.bytesMax, path: path, headers: headers}
	return nil
}

func (m *minimal) Add(piece []byte) error {
	if m.body.Len()+len(piece) > m.bytesMax {
		m.body.Reset()
		return ErrTooLarge
	}
	m.body.Write(piece)
	return nil
}

func (m *minimal) End() error { return json.Unmarshal(m.body.Bytes(), &m.request) }

func (m *minimal) header(names ...string) string {
	for _, name := range names {
		for _, header := range m.headers {
			if header.Key == name {
				return header.Value
			}
		}
	}
	return ""
}

func (m *minimal) Request(to *pickd.Request) error {
	to.Model, to.Salt = m.request.Model, m.request.CacheSalt
	to.Stream = m.request.Stream
	to.SessionID = m.header("x-session-id")
	to.RequestID = m.header("x-request-id")
	to.FairnessID = m.header("x-llm-d-inference-fairness-id", "x-gateway-inference-fairness-id")
	if text := m.request.Prompt + string(m.request.Messages); text != "" {
		to.Text = []string{text}
	}
	return nil
}

func (m *minimal) BeginAnswer(status int, headers []pickd.Attribute) error {
	m.status = status
	for _, header := range headers {
		if header.Key == "content-type" {
			m.events = strings.HasPrefix(header.Value, "text/event-stream")
		}
	}
	return nil
}

func (m *minimal) AddAnswer(piece []byte) Event {
	m.answer.Write(piece)
	if !m.events {
		return 0
	}
	var happened Event
	for {
		line, rest, whole := bytes.Cut(m.answer.Bytes(), []byte("\n"))
		if !whole {
			return happened
		}
		happened |= m.line(bytes.TrimRight(line, "\r"))
		m.answer.Next(m.answer.Len() - len(rest))
	}
}

func (m *minimal) line(line []byte) Event {
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

func (m *minimal) EndAnswer() {
	if !m.events {
		m.failed = json.Unmarshal(m.answer.Bytes(), &m.usage) != nil
	} else {
		m.failed = !m.ended
	}
}

func (m *minimal) Report(report *pickd.Report) error {
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

func (m *minimal) Release() {}
