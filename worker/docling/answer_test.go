package docling

import (
	"fmt"
	"strings"
	"testing"
)

func TestConvertErrors(t *testing.T) {
	t.Parallel()
	poll := func(body string) func(*serve) {
		return func(s *serve) { s.poll = reply(200, body) }
	}
	result := func(status int, body string) func(*serve) {
		return func(s *serve) { s.result = reply(status, body) }
	}
	submit := func(status int, body string) func(*serve) {
		return func(s *serve) { s.submit = reply(status, body) }
	}
	backend := func(message string) string {
		return `[{"component_type": "document_backend", "module_name": "DoclingParseDocumentBackend", "error_message": "` + message +
			`", "category": "backend_failure", "page_no": null}]`
	}
	failure := func(category string, retryable bool) string {
		return fmt.Sprintf(`{"task_id": "b7c1", "task_status": "failure", "error_message": "It broke.", "failure": {"category": %q,
			"message": "It\nbroke.", "retryable": %v, "phase": "execution", "details": {}}}`, category, retryable)
	}
	for name, test := range map[string]struct {
		serve      func(*serve)
		code, text string
	}{
		"AWrongKeyIsNamed":                {submit(401, `{"detail": "`+secret+`"}`), "unreachable", "refuses the key (401)"},
		"AForbiddenKeyIsNamed":            {submit(403, `{}`), "unreachable", "refuses the key (403)"},
		"AnOverloadIsTheService":          {submit(429, `{"detail": "slow down"}`), "unreachable", "429: slow down"},
		"AnOptionRefusedIsTheService":     {submit(422, `{"detail": [{"type": "enum", "loc": ["body", "to_formats"], "msg": "Input should be 'md'"}]}`), "unreachable", "422: Input should be 'md'"},
		"AKeySentBackIsNotShown":          {submit(500, `{"detail": "bad `+secret+`"}`), "unreachable", "500: bad …"},
		"AFileTooLargeForTheServer":       {submit(413, `too large`), "too_large", "split it"},
		"AnAnswerThatIsNoJSON":            {submit(200, `<html>Welcome</html>`), "unreachable", "not what docling-serve answers"},
		"AnAnswerWithoutTask":             {submit(200, `{"status": "ok"}`), "unreachable", "names no task"},
		"ATaskWithUnknownStatus":          {poll(`{"task_id": "b7c1", "task_status": "odd"}`), "unreachable", `"odd"`},
		"ATaskForgotten":                  {func(s *serve) { s.poll = reply(404, `{"detail": "Task not found."}`) }, "unreachable", "lost the conversion, perhaps by a restart; it answered 404: Task not found."},
		"AResultLost":                     {result(404, `{"detail": "Task result not found. Please wait for a completion status."}`), "unreachable", "Task result not found."},
		"AResultWithoutStatus":            {result(200, `{"hello": [1, {"a": null}]}`), "unreachable", "has no status"},
		"AResultOfUnknownStatus":          {result(200, outcome("great", "null", "[]")), "unreachable", `"great"`},
		"AResultWithoutDocument":          {result(200, outcome("success", "null", "[]")), "unreachable", "no document in JSON"},
		"AResultOfAnotherShape":           {result(200, `{"document": [1], "status": "success"}`), "unreachable", "found [ instead of {"},
		"ADocumentOfAnotherShape":         {result(200, outcome("success", `{"texts": [{"text": 5}]}`, "[]")), "unreachable", "not what docling-serve answers"},
		"AResultCutShort":                 {result(200, `{"document": {"json_content": {"texts": [`), "unreachable", "EOF"},
		"AFileThatFails":                  {result(200, outcome("failure", "null", backend(`Inconsistent\n  xref table`))), "corrupt", "The PDF can't be converted: Inconsistent xref table"},
		"AFileThatFailsWithoutReason":     {result(200, outcome("failure", "null", "[]")), "corrupt", "The PDF is damaged"},
		"AFileWithPassword":               {result(200, outcome("failure", "null", backend("Failed to load document (PDFium: Incorrect password error)."))), "password_required", "without its password"},
		"AFileOfUnknownType":              {result(200, outcome("skipped", "null", `[{"error_message": "File format not allowed: a.xyz", "category": "policy"}]`)), "unsupported_type", "File format not allowed"},
		"AFileThatTakesTooLong":           {result(200, outcome("failure", "null", `[{"error_message": "too slow", "category": "timeout"}]`)), "timeout", "takes too long"},
		"AFileWithoutText":                {result(200, outcome("success", `{"body": {"children": []}, "texts": []}`, "[]")), "no_text_layer", "No text was found in the PDF"},
		"AFileNoPageOfWhichCanBeRead":     {result(200, outcome("partial_success", `{"body": {"children": []}}`, backend("page is broken"))), "corrupt", "page is broken"},
		"AFileNoPageOfWhichWasDoneInTime": {result(200, outcome("partial_success", `{"body": {"children": []}}`, `[{"error_message": "too slow", "category": "timeout"}]`)), "timeout", "takes too long"},
		"ATaskThatFailsForNoReason":       {poll(`{"task_id": "b7c1", "task_status": "failure", "error_message": null}`), "unreachable", "ended without a result"},
		"ATaskThatFailsByTheService":      {poll(failure("internal", false)), "unreachable", "It broke."},
		"ATaskThatFailsByTheFile":         {poll(failure("policy", false)), "corrupt", "The PDF can't be converted: It broke."},
		"ATaskThatMayBeRetried":           {poll(failure("policy", true)), "unreachable", "It broke."},
		"ATaskThatTakesTooLong":           {poll(failure("timeout", false)), "timeout", "takes too long"},
		"AResultThatIsAFailure":           {result(200, `{"kind": "TaskFailureResult", "failure": {"category": "capacity", "message": "full", "retryable": true}}`), "unreachable", "full"},
		"ASyncTaskThatCrashed": {func(s *serve) {
			s.submit = reply(404, `{"detail": "Not Found"}`)
			s.convert = reply(404, `{"detail": "Task result not found. Please wait for a completion status."}`)
		}, "unreachable", "404: Task result not found."},
		"ASyncRequestThatTheServerEnds": {func(s *serve) {
			s.submit = reply(405, `{"detail": "Method Not Allowed"}`)
			s.convert = reply(504, `{"detail": "Conversion is taking too long."}`)
		}, "unreachable", "504: Conversion is taking too long."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServe(t)
			test.serve(s)
			_, err := s.convertPDF(t)
			if code(err) != test.code || !strings.Contains(err.Error(), test.text) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %s: %v", code(err), err)
			}
		})
	}
}
