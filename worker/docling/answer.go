package docling

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build"
)

const (
	maxReason = 200 // Bytes of docling-serve's words in an error.
	maxErrors = 20  // Page errors in the metadata.
)

// task is docling-serve's answer about the state of a conversion.
type task struct {
	ID      string   `json:"task_id"`
	Status  string   `json:"task_status"`
	Message string   `json:"error_message"`
	Failure *failure `json:"failure"`
}

// failure is why docling-serve gave a task up.
type failure struct {
	Category  string `json:"category"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

// problem is one of the errors of a conversion.
type problem struct {
	Message  string `json:"error_message"`
	Category string `json:"category"`
	Page     int    `json:"page_no"`
}

// answer is the outcome of a conversion. Document is nil where docling-serve made none.
type answer struct {
	Status   string
	Problems []problem
	Failure  *failure
	Document *document
}

// readAnswer reads an outcome piece by piece, so that it does not stand in memory twice.
func readAnswer(dec *json.Decoder) (answer, error) {
	var a answer
	err := members(dec, func(key string) error {
		switch key {
		case "status":
			return dec.Decode(&a.Status)
		case "errors":
			return dec.Decode(&a.Problems)
		case "failure":
			return dec.Decode(&a.Failure)
		case "document":
			return members(dec, func(key string) error {
				if key != "json_content" {
					return dec.Decode(&ignored{})
				}
				var err error
				a.Document, err = readDocument(dec)

				return err
			})
		default:
			return dec.Decode(&ignored{})
		}
	})

	return a, err
}

// result turns an outcome into a document or into an error that says who is to blame.
func (f file) result(a answer) (parse.Document, error) {
	reason := ""
	if len(a.Problems) > 0 {
		reason = oneLine(a.Problems[0].Message)
	}
	switch a.Status {
	case "success", "partial_success":
		if a.Document == nil {
			return parse.Document{}, &fault{message: "its answer holds no document in JSON"}
		}

		return f.document(a)
	case "failure":
		switch {
		case hasPassword(a.Problems):
			return parse.Document{}, f.errPassword()
		case hasTimeout(a.Problems):
			return parse.Document{}, f.errTimeout()
		default:
			return parse.Document{}, f.errCorrupt(reason)
		}
	case "skipped":
		return parse.Document{}, f.errSkipped(reason)
	case "":
		if a.Failure != nil {
			return parse.Document{}, f.taskError(*a.Failure)
		}

		return parse.Document{}, &fault{message: "its answer has no status; is the URL that of docling-serve?"}
	default:
		return parse.Document{}, &fault{message: fmt.Sprintf("its answer has the unknown status %q", oneLine(a.Status))}
	}
}

func (f file) document(a answer) (parse.Document, error) {
	doc, err := a.Document.convert(f, pageErrors(a.Problems))
	if parseCode(err) != "no_text_layer" || len(a.Problems) == 0 {
		return doc, err
	}
	if hasTimeout(a.Problems) {
		return parse.Document{}, f.errTimeout()
	}

	return parse.Document{}, f.errCorrupt(oneLine(a.Problems[0].Message)) // No page could be read.
}

// taskError is the error of a task that ended without an outcome. Only some categories put the blame on the file.
func (f file) taskError(why failure) error {
	reason := oneLine(why.Message)
	if hasPassword([]problem{{Message: why.Message}}) {
		return f.errPassword()
	}
	if !why.Retryable {
		switch why.Category {
		case "timeout":
			return f.errTimeout()
		case "policy", "source_unavailable", "backend_failure", "inference_failure":
			return f.errCorrupt(reason)
		}
	}
	if reason == "" {
		return &fault{message: "the conversion ended without a result"}
	}

	return &fault{message: "the conversion ended without a result: " + reason}
}

func hasPassword(list []problem) bool {
	for _, p := range list {
		if strings.Contains(strings.ToLower(p.Message), "password") {
			return true
		}
	}

	return false
}

func hasTimeout(list []problem) bool {
	for _, p := range list {
		if p.Category == "timeout" {
			return true
		}
	}

	return false
}

// pageErrors is the short list for the metadata.
func pageErrors(list []problem) []string {
	var lines []string
	for _, p := range list[:min(len(list), maxErrors)] {
		line := oneLine(p.Message)
		if line == "" {
			line = "unknown error"
		}
		if p.Page > 0 {
			line = fmt.Sprintf("page %d: %s", p.Page, line)
		}
		lines = append(lines, line)
	}
	if more := len(list) - maxErrors; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}

	return lines
}

// oneLine makes docling-serve's words fit into a message.
func oneLine(s string) string {
	s = build.Line(s)
	if len(s) <= maxReason {
		return s
	}
	cut := maxReason
	for !utf8.RuneStart(s[cut]) {
		cut--
	}

	return strings.TrimSpace(s[:cut]) + "…"
}
