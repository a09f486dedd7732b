package api_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestTwoTenantsAtRandom sends requests with swapped ids, projects and tokens: nothing of beta comes to alpha, and nothing of
// beta changes; nor does anything of alpha come to beta, who only reads.
func TestTwoTenantsAtRandom(t *testing.T) {
	t.Parallel()
	ts := startTenants(t, config{})
	a := ts.things(t, ts.a, ts.projectA, "alphamarker")
	b := ts.things(t, ts.b, ts.projectB, "betamarker")
	ts.stopWorker(t)
	before := ts.rowsOf(t, ts.projectB)
	operations := ts.operations(t)
	nothing := made(t, a)
	garbage := []string{"", "%00", "..%2F..", "1%20OR%201=1", strings.Repeat("x", 300), "doc_", "%F0%9F%9A%80"}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)

	one := func(random *rand.Rand) {
		d := operations[random.IntN(len(operations))]
		caller, other, foreign := ts.a, b, "betamarker"
		if random.IntN(3) == 0 {
			caller, other, foreign = ts.b, a, "alphamarker"
			if !d.isRead() {
				return
			}
		}
		if d.OperationID == "deleteMemoryStore" && random.IntN(20) > 0 || d.OperationID == "deleteDocument" && random.IntN(20) > 0 {
			return // what is deleted early is not asked for later
		}
		pick := func(name string) string {
			switch random.IntN(8) {
			case 0:
				return garbage[random.IntN(len(garbage))]
			case 1:
				return nothing[name]
			case 2, 3, 4:
				return other[name]
			default:
				return a[name]
			}
		}
		fill := func(text string, inBody bool) string {
			return placeholder.ReplaceAllStringFunc(text, func(name string) string {
				name = strings.Trim(name, "{}")
				if name == "marker" {
					return "text" // an echo of the query would be no leak
				}
				value := pick(name)
				if inBody {
					value = strings.ReplaceAll(value, `"`, "")
				}
				return value
			})
		}
		row := calls[d.OperationID]
		path, query := fill(d.path, false), fill(row.query, false)
		headers := []string{"Authorization", "Bearer " + caller.key, "Content-Type", "application/json"}
		switch random.IntN(6) {
		case 0:
			headers = append(headers, "X-Project-Id", strings.ReplaceAll(pick("project_id"), "%", ""))
		case 1:
			query += "&project_id=" + pick("project_id")
		}
		var body io.Reader
		switch {
		case row.form != nil:
			encoded, contentType := form(t, with(note(fmt.Sprint("n", random.Uint64()), fmt.Sprint("random text ", random.Uint64())), "project_id", pick("project_id")))
			body, headers[3] = encoded, contentType
		case row.contentType != "":
			body, headers[3] = strings.NewReader(fill(row.body, true)), row.contentType
		case row.body != "":
			text := fill(row.body, true)
			if random.IntN(4) == 0 {
				text = strings.Replace(text, "{", `{"project_id": "`+pick("project_id")+`", `, 1)
			}
			body = strings.NewReader(text)
		}
		got := ts.raw(t, d.method, path+"?"+strings.TrimPrefix(query, "&"), body, headers...)
		var header bytes.Buffer
		must(t, got.header.Write(&header))
		if got.status >= 500 {
			t.Errorf("%s %s: %d %s", d.method, path, got.status, got.body)
		}
		for _, text := range []string{foreign, other["document_id"], other["memory_id"], other["memory_store_id"], other["job_id"], other["key_id"]} {
			echoed := strings.Contains(path+query, text)
			if !echoed && bytes.Contains(got.body, []byte(text)) || strings.Contains(header.String(), text) {
				if d.OperationID == "searchKnowledge" && text == other["document_id"] && !bytes.Contains(got.body, []byte(foreign)) {
					continue // why names the document that was asked about
				}
				t.Errorf("%s %s shows %q: %.300s", d.method, path, text, got.body)
			}
		}
	}
	var wait sync.WaitGroup
	requests, workers := 10_000, 4
	if testing.Short() {
		requests = 1_000
	}
	for worker := range workers {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(worker)))
			for range requests / workers {
				one(random)
			}
		})
	}
	wait.Wait()
	after := ts.rowsOf(t, ts.projectB)
	// Beta's own searches count there, and are written down.
	after["embedding_usage"], after["searches"] = before["embedding_usage"], before["searches"]
	wantSameRows(t, before, after)
	if got := ts.b.get(t, "/api/v1/documents/"+b["document_id"]).want(t, http.StatusOK).object(t); got["title"] != "Title betamarker" {
		t.Errorf("%v", got)
	}
}
