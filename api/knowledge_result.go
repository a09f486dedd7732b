package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/kb-search/kb/api/search"
	"github.com/kb-search/kb/db"
)

// knowledgeResult is a documentKnowledge or a memoryKnowledge; source_type says which.
type knowledgeResult struct{ value any }

// MarshalJSON implements json.Marshaler.
func (r knowledgeResult) MarshalJSON() ([]byte, error) { return json.Marshal(r.value) }

// Schema implements huma.SchemaProvider.
func (knowledgeResult) Schema(r huma.Registry) *huma.Schema {
	document := r.Schema(reflect.TypeFor[documentKnowledge](), true, "DocumentKnowledgeResult")
	memory := r.Schema(reflect.TypeFor[memoryKnowledge](), true, "MemoryKnowledgeResult")
	return &huma.Schema{
		OneOf:       []*huma.Schema{document, memory},
		Description: "A passage of a document, or a memory",
		Discriminator: &huma.Discriminator{
			PropertyName: "source_type", Mapping: map[string]string{"document": document.Ref, "memory": memory.Ref},
		},
	}
}

// KnowledgeScore is what every result of a query has. It is exported since huma passes over embedded structs that are not.
type KnowledgeScore struct {
	Score           *float64          `json:"score,omitempty" doc:"The results are sorted by it; its size means nothing"`
	Signals         *knowledgeSignals `json:"signals,omitempty" doc:"The ranks in the channels that found it"`
	SimilarityScore *float64          `json:"similarity_score,omitempty" minimum:"0" maximum:"1" doc:"The cosine similarity of query and result; absent without a vector"`
	Highlight       string            `json:"highlight,omitempty" doc:"What was found, as HTML, with the words in <mark>"`
	Explain         *knowledgeExplain `json:"explain,omitempty" doc:"The parts of the score"`
}

type knowledgeSignals struct {
	_       struct{} `additionalProperties:"true"`
	Vector  int64    `json:"vector,omitempty" minimum:"1" doc:"The rank in the vector channel; absent when that did not find it"`
	Lexical int64    `json:"lexical,omitempty" minimum:"1" doc:"The rank in the lexical channel; absent when that did not find it"`
}

// knowledgeExplain has the parts of a score; those of a channel that did not find the result are 0.
type knowledgeExplain struct {
	_            struct{} `additionalProperties:"true"`
	LexicalScore float64  `json:"lexical_score" doc:"BM25 in the lexical channel"`
	LexicalRRF   float64  `json:"lexical_rrf" doc:"What the lexical channel adds in rank fusion, weighted"`
	VectorScore  float64  `json:"vector_score" doc:"Cosine similarity in the vector channel"`
	VectorRRF    float64  `json:"vector_rrf" doc:"What the vector channel adds in rank fusion, weighted"`
	Cosine       float64  `json:"cosine" doc:"In a blend: the cosine similarity, whichever channel found it"`
	BM25         float64  `json:"bm25" doc:"In a blend: BM25, whichever channel found it"`
	Decay        float64  `json:"decay" doc:"What the score was multiplied with for its age"`
	RerankExplain
	Score float64 `json:"score" doc:"The score"`
}

type documentKnowledge struct {
	_               struct{}          `additionalProperties:"true"`
	SourceType      string            `json:"source_type" enum:"document" doc:"Always document"`
	DocumentID      string            `json:"document_id" doc:"The document's id"`
	DocumentVersion int32             `json:"document_version" doc:"The version of the document that the passage belongs to"`
	ChunkID         string            `json:"chunk_id" doc:"The passage's id"`
	Page            *int32            `json:"page" doc:"Its page in the source, from 1; null where there are none"`
	FileID          string            `json:"file_id" doc:"The id of the document's file"`
	ProjectID       string            `json:"project_id" doc:"The document's project"`
	Path            string            `json:"path,omitempty" doc:"Where the document stands in the caller's own tree; absent for a note without a path"`
	Filename        string            `json:"filename" doc:"The name of the file"`
	Size            int64             `json:"size" doc:"The size of the file in bytes"`
	Title           string            `json:"title" doc:"The document's title"`
	Metadata        json.RawMessage   `json:"metadata" doc:"The document's metadata, as they were written"`
	Tags            map[string]string `json:"tags" doc:"The document's tags"`
	Content         string            `json:"content" doc:"The passage's text"`
	KnowledgeScore
	CreatedAt time.Time `json:"created_at" doc:"When the document was ingested"`
	UpdatedAt time.Time `json:"updated_at" doc:"When it last changed, or was ingested"`
}

type memoryKnowledge struct {
	_               struct{}          `additionalProperties:"true"`
	SourceType      string            `json:"source_type" enum:"memory" doc:"Always memory"`
	MemoryID        string            `json:"memory_id" doc:"The memory's id"`
	MemoryStoreID   string            `json:"memory_store_id" doc:"Its store's id"`
	MemoryStoreName string            `json:"memory_store_name" doc:"Its store's name"`
	Content         string            `json:"content" doc:"Its text"`
	Tags            map[string]string `json:"tags,omitempty" doc:"Its tags; absent when it has none"`
	KnowledgeScore
	CreatedAt time.Time `json:"created_at" doc:"When it was written"`
	UpdatedAt time.Time `json:"updated_at" doc:"When it last changed, or was written"`
}

// knowledgeWhy says what became of a document.
type knowledgeWhy struct {
	_          struct{} `additionalProperties:"true"`
	DocumentID string   `json:"document_id" doc:"The document's id"`
	Step       string   `json:"step" enum:"not_found,include_documents,filter,not_recalled,min_similarity,min_score,offset,limit,returned" doc:"The step at which it dropped out; returned when it did not"`
	Filter     *string  `json:"filter" doc:"The first filter that it does not fit; null when it fits all"`
	Position   *int64   `json:"position" doc:"The place of its best passage in the whole ranking, from 1; null when it has none"`
	Similarity *float64 `json:"similarity" doc:"The cosine similarity of its best passage; null without vectors"`
	HasAnyWord *bool    `json:"has_any_word" doc:"Whether a passage holds a word of the query; null when it has none"`
}

func newKnowledge(body knowledgeRequest, response search.Response) (*knowledgeOutput, error) {
	out := &knowledgeOutput{Body: knowledgeResponse{Results: make([]knowledgeResult, len(response.Rows))}}
	for i, row := range response.Rows {
		var err error
		if out.Body.Results[i], err = newKnowledgeResult(row, newRerankExplain(response.Blended, i), body); err != nil {
			return nil, err
		}
	}
	if reranked := response.Blended != nil; body.Rerank {
		out.Body.Reranked = &reranked
	}
	if response.Degraded {
		out.Body.Degraded = []string{"semantic"}
	}
	if body.Offset > 0 || body.GroupBy != "" || body.Explain {
		out.Body.Total = &response.TotalMatches
	}
	if body.Explain {
		out.Body.Explain = response.Counts
	}
	return out, addWhy(out, response.Why)
}

func addWhy(out *knowledgeOutput, answers json.RawMessage) error {
	if len(answers) == 0 {
		return nil
	}
	if err := json.Unmarshal(answers, &out.Body.Why); err != nil {
		return fmt.Errorf("read what became of documents: %w", err)
	}
	for i, answer := range out.Body.Why {
		id, err := uuid.Parse(answer.DocumentID)
		if err != nil {
			return fmt.Errorf("read what became of documents: %w", err)
		}
		out.Body.Why[i].DocumentID = publicID(prefixDocument, id)
	}
	return nil
}

func newKnowledgeResult(row db.SearchRow, rerank RerankExplain, body knowledgeRequest) (knowledgeResult, error) {
	var tags map[string]string
	if err := json.Unmarshal(row.Tags, &tags); err != nil {
		return knowledgeResult{}, fmt.Errorf("read the tags of %s: %w", row.ID, err)
	}
	score := newKnowledgeScore(row, rerank, body)
	if row.IsMemory {
		return knowledgeResult{memoryKnowledge{
			SourceType: "memory", MemoryID: publicID(prefixMemory, row.ID), MemoryStoreID: publicID(prefixMemoryStore, row.ParentID),
			MemoryStoreName: row.StoreName, Content: row.Content, Tags: tags, KnowledgeScore: score, CreatedAt: row.CreatedAt.UTC(),
			UpdatedAt: orTime(row.MemoryUpdatedAt, row.CreatedAt),
		}}, nil
	}
	result := documentKnowledge{
		SourceType: "document", DocumentID: publicID(prefixDocument, row.ParentID), DocumentVersion: row.Version, ChunkID: publicID(prefixChunk, row.ID),
		Page: row.Page, FileID: publicID(prefixFile, row.ParentID), ProjectID: publicID(prefixProject, row.ProjectID), Filename: row.OriginalFilename,
		Size: row.Size, Title: row.Title, Metadata: row.Metadata, Tags: tags, Content: row.Content, KnowledgeScore: score, CreatedAt: row.CreatedAt.UTC(),
		UpdatedAt: orTime(row.DocumentUpdatedAt, row.CreatedAt),
	}
	if row.Path != nil {
		result.Path = *row.Path
	}
	return knowledgeResult{result}, nil
}

func newKnowledgeScore(row db.SearchRow, rerank RerankExplain, body knowledgeRequest) (score KnowledgeScore) {
	if body.Query == "" {
		return score
	}
	score.Score = &row.Score
	score.Signals = &knowledgeSignals{Vector: row.SemanticRank, Lexical: row.LexicalRank}
	if row.HasSimilarity {
		similarity := min(max(row.Similarity, 0), 1)
		score.SimilarityScore = &similarity
	}
	if body.Highlight {
		score.Highlight = search.Marked(row.Highlight)
	}
	if body.Explain {
		score.Explain = &knowledgeExplain{
			LexicalScore: row.LexicalScore, LexicalRRF: row.LexicalRrf, VectorScore: row.SemanticScore, VectorRRF: row.SemanticRrf, Cosine: row.Cosine,
			BM25: row.Bm25, Decay: row.Decay, RerankExplain: rerank, Score: row.Score,
		}
	}
	return score
}

// orTime gives a time in UTC, or another one where there is none.
func orTime(t *time.Time, other time.Time) time.Time {
	if t == nil {
		return other.UTC()
	}
	return t.UTC()
}
