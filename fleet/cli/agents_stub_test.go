package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// model is a model server on the loopback: it keeps what it was asked, and answers each turn once it is let go. It speaks the
// four protocols that agents speak, as far as a turn needs: a tool once, where one is asked for, and a last word.
type model struct {
	URL string
	// tool is the tool that the first answer to whoever has it calls, with its input; none where empty.
	tool, input string
	called      atomic.Bool

	mu    sync.Mutex // guards asked
	asked []string
	turns chan struct{} // an answer each
}

// lastWord is what the model says at the end of each turn.
const lastWord = "All done here."

func newModel(t *testing.T, tool, input string) *model {
	m := &model{tool: tool, input: input, turns: make(chan struct{}, 100)}
	server := httptest.NewServer(m)
	t.Cleanup(func() {
		m.answer(100)
		server.CloseClientConnections()
		server.Close()
	})
	m.URL = server.URL
	return m
}

// answer lets n answers go.
func (m *model) answer(n int) {
	for range n {
		select {
		case m.turns <- struct{}{}:
		default:
		}
	}
}

// heard reports whether a request held all of texts, each as a string of its JSON.
func (m *model) heard(texts ...string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
next:
	for _, body := range m.asked {
		for _, text := range texts {
			if !holds(body, text) {
				continue next
			}
		}
		return true
	}
	return false
}

// last is the end of what the model was told last.
func (m *model) last() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.asked) == 0 {
		return "nothing"
	}
	body := m.asked[len(m.asked)-1]
	return body[max(0, len(body)-2000):]
}

// holds reports whether a string somewhere in the JSON document holds text.
func holds(body, text string) bool {
	var doc any
	if json.Unmarshal([]byte(body), &doc) != nil {
		return false
	}
	var search func(any) bool
	search = func(v any) bool {
		switch v := v.(type) {
		case string:
			return strings.Contains(v, text)
		case []any:
			for _, e := range v {
				if search(e) {
					return true
				}
			}
		case map[string]any:
			for _, e := range v {
				if search(e) {
					return true
				}
			}
		}
		return false
	}
	return search(doc)
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"data":[],"models":[]}`)
		return
	}
	text := string(body)
	m.mu.Lock()
	m.asked = append(m.asked, text)
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	w.(http.Flusher).Flush()
	if holds(text, "Generate a concise, single-line task title") { // a turn of the agent's own, which nobody waits for
		m.respond(w, r.URL.Path, false)
		return
	}
	select {
	case <-m.turns:
	case <-r.Context().Done():
		return
	}
	answered := strings.Contains(text, "tool_result") || strings.Contains(text, "function_call_output") || strings.Contains(text, `"role":"tool"`)
	call := m.tool != "" && !answered && strings.Contains(text, `"`+m.tool+`"`) && m.called.CompareAndSwap(false, true)
	m.respond(w, r.URL.Path, call)
}

func (m *model) respond(w io.Writer, path string, call bool) {
	event := func(kind string, rest string) {
		fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, rest)
	}
	quoted, _ := json.Marshal(m.input) // a string
	switch {
	case strings.HasSuffix(path, "/responses"):
		item := `{"type":"message","role":"assistant","id":"m1","content":[{"type":"output_text","text":"` + lastWord + `"}]}`
		if call {
			item = `{"type":"function_call","id":"f1","call_id":"c1","name":"` + m.tool + `","arguments":` + string(quoted) + `}`
		}
		event("response.created", `,"response":{"id":"r1"}`)
		event("response.output_item.done", `,"item":`+item)
		event("response.completed", `,"response":{"id":"r1","usage":{"input_tokens":1,"input_tokens_details":null,"output_tokens":1,"output_tokens_details":null,"total_tokens":2}}`)
	case strings.HasSuffix(path, "/chat/completions"):
		const chunk = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"stub","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`
		delta, reason := `{"role":"assistant","content":"`+lastWord+`"}`, `"stop"`
		if call {
			delta = `{"role":"assistant","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"` + m.tool + `","arguments":` + string(quoted) + `}}]}`
			reason = `"tool_calls"`
		}
		for _, data := range []string{fmt.Sprintf(chunk, delta, "null"), fmt.Sprintf(chunk, "{}", reason), "[DONE]"} {
			fmt.Fprintf(w, "data: %s\n\n", data)
		}
	case strings.Contains(path, "GenerateContent"):
		fmt.Fprintf(w, "data: %s\n\n", `{"candidates":[{"content":{"role":"model","parts":[{"text":"`+lastWord+`"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}}`)
	default:
		block, delta, reason := `{"type":"text","text":""}`, `{"type":"text_delta","text":"`+lastWord+`"}`, "end_turn"
		if call {
			block = `{"type":"tool_use","id":"toolu_01","name":"` + m.tool + `","input":{}}`
			delta, reason = `{"type":"input_json_delta","partial_json":`+string(quoted)+`}`, "tool_use"
		}
		event("message_start", `,"message":{"id":"msg_1","type":"message","role":"assistant","model":"stub","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}`)
		event("content_block_start", `,"index":0,"content_block":`+block)
		event("content_block_delta", `,"index":0,"delta":`+delta)
		event("content_block_stop", `,"index":0`)
		event("message_delta", `,"delta":{"stop_reason":"`+reason+`"},"usage":{"output_tokens":3}`)
		event("message_stop", "")
	}
}
