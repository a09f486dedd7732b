package eval

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Document is one line of corpus.jsonl.
type Document struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Text  string `json:"text"`
	// Store names the memory store that the document belongs to; empty in sets of documents.
	Store string `json:"store,omitempty"`
	// Metadata is as JSON is read: its lists are []any.
	Metadata      map[string]any `json:"metadata,omitempty"`
	KnowledgeType string         `json:"knowledge_type,omitempty"`
}

// Query is one line of queries.jsonl.
type Query struct {
	ID string `json:"id"`
	// Text is the query as free text.
	Text string `json:"text"`
	// Store narrows the search to one memory store.
	Store string `json:"store,omitempty"`

	// Keywords, QueryText, Filters and Mode ask the same of structured search.
	Keywords  []string          `json:"keywords,omitempty"`
	QueryText string            `json:"query_text,omitempty"`
	Filters   map[string]Values `json:"filters,omitempty"`
	Mode      string            `json:"mode,omitempty"`
	// Kind groups queries that test the same.
	Kind string `json:"kind,omitempty"`
	// Expected is nil in sets that judge rankings only.
	Expected *Expected `json:"expected,omitempty"`
}

// Values are the values of a filter, any of which fits: in JSON a string or a list of them.
type Values []string

// MarshalJSON writes a single value as a string.
func (v Values) MarshalJSON() ([]byte, error) {
	if len(v) == 1 {
		return json.Marshal(v[0])
	}
	return json.Marshal([]string(v))
}

// UnmarshalJSON reads a string or a list.
func (v *Values) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		*v = make(Values, 1)
		return json.Unmarshal(data, &(*v)[0])
	}
	return json.Unmarshal(data, (*[]string)(v))
}

// Expected is what structured search must answer.
type Expected struct {
	Status string `json:"status"`
	// Total is how many documents match in the stage that answers; 0 for vector_only and no_hit.
	Total int `json:"total"`
	// First is the document that must be the first result; empty when the order is open.
	First string `json:"first,omitempty"`
	// Facets are those of too_many: the most frequent values, equally frequent ones in the order of their bytes.
	Facets map[string][]Bucket `json:"facets,omitempty"`
	// FacetsTruncated sums the counts of the values that Facets leaves out.
	FacetsTruncated map[string]int `json:"facets_truncated,omitempty"`
}

// Bucket is a value of a facet and how many documents have it.
type Bucket struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// Set is a judged set: a folder with corpus.jsonl, queries.jsonl and qrels.tsv (query id, document id, grade).
type Set struct {
	Name      string
	Documents []Document
	// Queries are those that have a judgement or an expected status, in the order of their file.
	Queries    []Query
	Judgements map[string]map[string]int
	// Hash is the SHA-256 of corpus.jsonl: equal corpora are loaded once.
	Hash [sha256.Size]byte
}

// New makes a set that was not read from a folder.
func New(name string, documents []Document, queries []Query, judgements map[string]map[string]int) (*Set, error) {
	corpus, err := lines(documents)
	if err != nil {
		return nil, fmt.Errorf("write the corpus of %s: %w", name, err)
	}
	return &Set{Name: name, Documents: documents, Queries: queries, Judgements: judgements, Hash: sha256.Sum256(corpus)}, nil
}

// Write writes a set into a folder, which it makes, in the form that Read reads. Equal sets give equal bytes.
func Write(dir string, set *Set) error {
	corpus, err := lines(set.Documents)
	if err != nil {
		return fmt.Errorf("write the corpus of %s: %w", set.Name, err)
	}
	queries, err := lines(set.Queries)
	if err != nil {
		return fmt.Errorf("write the queries of %s: %w", set.Name, err)
	}
	var judgements bytes.Buffer
	for _, query := range set.Queries {
		grades := set.Judgements[query.ID]
		for _, id := range slices.Sorted(maps.Keys(grades)) {
			_, _ = fmt.Fprintf(&judgements, "%s\t%s\t%d\n", query.ID, id, grades[id])
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write the set %s: %w", set.Name, err)
	}
	for name, content := range map[string][]byte{"corpus.jsonl": corpus, "queries.jsonl": queries, "qrels.tsv": judgements.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("write the set %s: %w", set.Name, err)
		}
	}
	return nil
}

// lines writes each row as a line of JSON.
func lines[T any](rows []T) ([]byte, error) {
	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	encoder.SetEscapeHTML(false)
	for _, row := range rows {
		if err := encoder.Encode(row); err != nil {
			return nil, err
		}
	}
	return content.Bytes(), nil
}

// Read reads a set from its folder.
func Read(dir string) (*Set, error) {
	set := &Set{Name: filepath.Base(filepath.Clean(dir)), Judgements: map[string]map[string]int{}}
	corpus, err := os.ReadFile(filepath.Join(dir, "corpus.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("read the set %s: %w", set.Name, err)
	}
	set.Hash = sha256.Sum256(corpus)
	if set.Documents, err = readLines[Document](corpus); err != nil {
		return nil, fmt.Errorf("read the corpus of %s: %w", set.Name, err)
	}
	if err := set.readJudgements(filepath.Join(dir, "qrels.tsv")); err != nil {
		return nil, fmt.Errorf("read the judgements of %s: %w", set.Name, err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "queries.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("read the set %s: %w", set.Name, err)
	}
	queries, err := readLines[Query](content)
	if err != nil {
		return nil, fmt.Errorf("read the queries of %s: %w", set.Name, err)
	}
	for _, query := range queries {
		if len(set.Judgements[query.ID]) > 0 || query.Expected != nil {
			set.Queries = append(set.Queries, query)
		}
	}
	return set, nil
}

// judged are the queries with a judgement: only they have a ranking to measure.
func (s *Set) judged() []Query {
	return slices.DeleteFunc(slices.Clone(s.Queries), func(q Query) bool { return len(s.Judgements[q.ID]) == 0 })
}

func (s *Set) readJudgements(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for number, line := range strings.Split(strings.TrimSpace(string(content)), "\n") {
		fields := strings.Split(line, "\t")
		if len(fields) != 3 {
			return fmt.Errorf("line %d has %d fields, not 3", number+1, len(fields))
		}
		grade, err := strconv.Atoi(strings.TrimSpace(fields[2]))
		if err != nil {
			return fmt.Errorf("line %d: %w", number+1, err)
		}
		if s.Judgements[fields[0]] == nil {
			s.Judgements[fields[0]] = map[string]int{}
		}
		s.Judgements[fields[0]][fields[1]] = grade
	}
	return nil
}

func readLines[T any](content []byte) ([]T, error) {
	var rows []T
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, len(content)+1)
	for number := 1; lines.Scan(); number++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var row T
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		rows = append(rows, row)
	}
	return rows, lines.Err()
}
