package eval

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Document is one line of corpus.jsonl.
type Document struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Text  string `json:"text"`
	// Store names the memory store that the document belongs to; empty in sets of documents.
	Store string `json:"store"`
}

// Query is one line of queries.jsonl.
type Query struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	// Store narrows the search to one memory store.
	Store string `json:"store"`
}

// Set is a judged set: a folder with corpus.jsonl, queries.jsonl and qrels.tsv (query id, document id, grade).
type Set struct {
	Name      string
	Documents []Document
	// Queries are those that have a judgement, in the order of their file.
	Queries    []Query
	Judgements map[string]map[string]int
	// Hash is the SHA-256 of corpus.jsonl: equal corpora are loaded once.
	Hash [sha256.Size]byte
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
		if len(set.Judgements[query.ID]) > 0 {
			set.Queries = append(set.Queries, query)
		}
	}
	return set, nil
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
