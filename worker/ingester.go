package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/worker/chunk"
	"github.com/kb-search/kb/worker/job"
	"github.com/kb-search/kb/worker/parse"
)

const (
	// embedBatch is how many chunks are embedded between two signs of progress.
	embedBatch = 16
	// storeBatch is how many chunks one statement inserts: what goes to the database takes several times the room of what
	// it is made of.
	storeBatch = 500
)

// Phases of an ingestion, as a job shows them.
const (
	PhaseParse = "parse"
	PhaseEmbed = "embed"
	PhaseStore = "store"
)

// Source is a file to be ingested.
type Source struct {
	ProjectID uuid.UUID
	// Filename is the original name; its extension says how to read the file.
	Filename string
	// Title is the caller's; empty takes the content's own, else the file's name.
	Title string
	// Path is where the file stands in the caller's own tree; nil when nowhere.
	Path          *string
	DocType       string
	KnowledgeType *string
	Tags          json.RawMessage
	// Metadata is the caller's; it goes over what the file says about itself.
	Metadata json.RawMessage
	// Chunking is a job.Chunking.
	Chunking    json.RawMessage
	ContentHash []byte
	StoredPath  string
	// Size is that of the file; Data is let go once it is read.
	Size int64
	Data []byte
}

// Prepared is a document that is ready to be stored: parsed, cut and embedded.
type Prepared struct {
	Document db.DocumentInsertParams
	Chunks   []PreparedChunk
	// SpaceID is the embedding space of the vectors.
	SpaceID int32
	// Warning is what the sender should know of a file that was read otherwise than it was meant to; empty when nothing.
	Warning string
	// Timings holds how long each phase took.
	Timings map[string]time.Duration
}

// PreparedChunk is a chunk that is ready to be stored.
type PreparedChunk struct {
	chunk.Chunk

	ID uuid.UUID
	// Vector is nil for a chunk in which the model sees nothing.
	Vector []float32
}

// Ingester turns files into documents: parse, chunk, enrich, embed, store. The worker and kb eval share it.
type Ingester struct {
	spaces   *Spaces
	chunking job.Chunking
	reader   Reader
}

// specialTokens are the two that a model puts around a text.
const specialTokens = 2

// NewIngester prepares an ingester for the active one of spaces. chunking is for documents that ask for nothing else; its
// size defaults to what the model's window holds.
func NewIngester(spaces *Spaces, reader Reader, chunking job.Chunking) *Ingester {
	return &Ingester{spaces: spaces, reader: reader, chunking: chunking}
}

// CheckChunking says whether documents can be cut as a caller wants it.
func (in *Ingester) CheckChunking(ctx context.Context, chunking job.Chunking) error {
	stored, err := in.spaces.Active(ctx)
	if err != nil {
		return err
	}
	return CheckChunking(stored, in.chunking.With(chunking))
}

// CheckChunking says whether documents can be cut in that way for a model. Its error is a *job.ChunkingError.
func CheckChunking(embedder embed.Embedder, chunking job.Chunking) error {
	if window := embedder.Window() - specialTokens; chunking.Size > window {
		return &job.ChunkingError{Message: fmt.Sprintf("chunk size is %d tokens, must be at most %d: the model reads no more", chunking.Size, window)}
	}
	if err := chunkOptions(embedder, chunking).Validate(); err != nil {
		return &job.ChunkingError{Message: strings.ReplaceAll(err.Error(), "\n", "; ")}
	}
	return nil
}

func chunkOptions(embedder embed.Embedder, chunking job.Chunking) chunk.Options {
	options := chunk.Options{
		Size: cmp.Or(chunking.Size, embedder.Window()-specialTokens), Strategy: chunking.Strategy, Count: embedder.CountTokens,
	}
	if chunking.Overlap != nil {
		options.Overlap = *chunking.Overlap
	}
	return options
}

// Prepare parses, cuts and embeds a file. progress is called before each batch of chunks, with the phase and how many of
// how many are done. A file that can't be read gives a *parse.Error.
func (in *Ingester) Prepare(ctx context.Context, source Source, progress func(phase string, done, total int)) (Prepared, error) {
	started := time.Now()
	stored, err := in.spaces.Current(ctx)
	if err != nil {
		return Prepared{}, err
	}
	doc, warning, err := in.reader.read(ctx, source)
	source.Data = nil
	if err != nil {
		return Prepared{}, fmt.Errorf("parse %s: %w", source.Filename, err)
	}
	title := cleanTitle(source.Title)
	if title == "" {
		title = cleanTitle(doc.Title)
	}
	if title == "" {
		title = strings.TrimSuffix(filepath.Base(source.Filename), filepath.Ext(source.Filename))
	}
	options, err := in.optionsOf(stored, source)
	if err != nil {
		return Prepared{}, err
	}
	chunks, err := chunk.Split(ctx, doc, title, options)
	if err != nil {
		return Prepared{}, err
	}
	if len(chunks) == 0 {
		return Prepared{}, &parse.Error{Code: "empty", Message: "the file holds nothing that the model sees, such as lone accents"}
	}
	parsed := time.Now()

	prepared := newPrepared(source, doc, title, chunks)
	prepared.Warning = warning
	prepared.SpaceID = stored.ID
	for start := 0; start < len(chunks); start += embedBatch {
		progress(PhaseEmbed, start, len(chunks))
		if err := embedChunks(ctx, stored, prepared.Chunks[start:min(start+embedBatch, len(chunks))]); err != nil {
			return Prepared{}, err
		}
	}
	progress(PhaseStore, len(chunks), len(chunks))
	prepared.Timings = map[string]time.Duration{PhaseParse: parsed.Sub(started), PhaseEmbed: time.Since(parsed)}
	return prepared, nil
}

// optionsOf are the chunk options of a file. What was asked for may be more than the model of the moment can read.
func (in *Ingester) optionsOf(embedder embed.Embedder, source Source) (chunk.Options, error) {
	var chunking job.Chunking
	if len(source.Chunking) > 0 {
		if err := json.Unmarshal(source.Chunking, &chunking); err != nil {
			return chunk.Options{}, fmt.Errorf("read the chunking of %s: %w", source.Filename, err)
		}
	}
	options := chunkOptions(embedder, in.chunking.With(chunking))
	options.Size = min(options.Size, embedder.Window()-specialTokens)
	options.Overlap = min(options.Overlap, options.Size/2)
	return options, nil
}

// embedChunks adds the vectors of chunks. A chunk in which the model sees nothing gets none; it is found by its words.
func embedChunks(ctx context.Context, embedder embed.Embedder, chunks []PreparedChunk) error {
	var texts []string
	var seen []*PreparedChunk
	for i := range chunks {
		if text := chunks[i].EnrichedText(); embedder.CountTokens(text) > 0 {
			texts = append(texts, text)
			seen = append(seen, &chunks[i])
		}
	}
	vectors, err := embedder.Embed(ctx, embed.Passage, texts)
	if err != nil {
		return fmt.Errorf("embed %d chunks: %w", len(texts), err)
	}
	for i, vector := range vectors {
		seen[i].Vector = vector
	}
	return nil
}

func newPrepared(source Source, doc parse.Document, title string, chunks []chunk.Chunk) Prepared {
	prepared := Prepared{
		Document: db.DocumentInsertParams{
			ProjectID: source.ProjectID, ID: db.NewID(), Title: title, Path: source.Path, DocType: doc.Type, KnowledgeType: source.KnowledgeType,
			Tags: source.Tags, Metadata: mergeMetadata(doc.Metadata, source.Metadata), Chunking: orEmptyObject(source.Chunking),
			ContentHash: source.ContentHash, OriginalFilename: source.Filename, StoredPath: source.StoredPath,
			Size: source.Size, ChunkCount: int32(len(chunks)),
		},
		Chunks: make([]PreparedChunk, len(chunks)),
	}
	for i, c := range chunks {
		prepared.Chunks[i] = PreparedChunk{Chunk: c, ID: db.NewID()}
	}
	return prepared
}

// rows writes chunks as the parameters of the statements that store them and their vectors.
func (p Prepared) rows(chunks []PreparedChunk) (db.ChunkInsertManyParams, db.EmbeddingInsertManyParams) {
	texts := db.ChunkInsertManyParams{ProjectID: p.Document.ProjectID, DocumentID: p.Document.ID, ChunkCount: p.Document.ChunkCount}
	vectors := db.EmbeddingInsertManyParams{ProjectID: p.Document.ProjectID, DocumentID: p.Document.ID, SpaceID: p.SpaceID}
	for _, c := range chunks {
		texts.Ids = append(texts.Ids, c.ID)
		texts.Seqs = append(texts.Seqs, int32(c.Seq))
		texts.Pages = append(texts.Pages, int32(c.Page))
		texts.Sections = append(texts.Sections, c.Section)
		texts.Headings = append(texts.Headings, chunk.Heading(p.Document.Title, c.Section))
		texts.Contents = append(texts.Contents, c.Text)
		texts.EnrichedTexts = append(texts.EnrichedTexts, c.EnrichedText())
		if c.Vector != nil {
			vectors.ChunkIds = append(vectors.ChunkIds, c.ID)
			vectors.Vectors = append(vectors.Vectors, vectorText(c.Vector))
		}
	}
	return texts, vectors
}

// mergeMetadata puts a caller's metadata over a file's own. What can't be told in JSON is left out.
func mergeMetadata(own map[string]any, callers json.RawMessage) json.RawMessage {
	merged := map[string]json.RawMessage{}
	for key, value := range own {
		if encoded, err := json.Marshal(value); err == nil {
			merged[key] = encoded
		}
	}
	if len(callers) > 0 {
		_ = json.Unmarshal(callers, &merged)
	}
	encoded, err := json.Marshal(merged)
	if err != nil {
		return json.RawMessage("{}")
	}
	return encoded
}

func orEmptyObject(object json.RawMessage) json.RawMessage {
	if len(object) == 0 {
		return json.RawMessage("{}")
	}
	return object
}

// ErrSpaceChanged is a document that was embedded for a space that is not the active one any more; prepare it again.
var ErrSpaceChanged = errors.New("the embedding space has changed meanwhile")

// Store inserts a prepared document with all that belongs to it. It belongs into a transaction. The error may be
// ErrSpaceChanged.
func (in *Ingester) Store(ctx context.Context, tx pgx.Tx, prepared Prepared) (db.Document, error) {
	document, err := db.New().DocumentInsert(ctx, tx, prepared.Document)
	if err != nil {
		return db.Document{}, fmt.Errorf("insert document: %w", err)
	}
	return document, in.storeParts(ctx, tx, prepared)
}

// storeParts inserts what hangs on a document that is there.
func (in *Ingester) storeParts(ctx context.Context, tx pgx.Tx, prepared Prepared) error {
	queries := db.New()
	if err := queries.EmbeddingSpaceShare(ctx, tx); err != nil {
		return fmt.Errorf("hold the active embedding space: %w", err)
	}
	active, err := queries.EmbeddingSpaceGetActive(ctx, tx)
	if err != nil {
		return fmt.Errorf("read the active embedding space: %w", err)
	}
	if active.ID != prepared.SpaceID {
		return ErrSpaceChanged
	}
	for chunks := range slices.Chunk(prepared.Chunks, storeBatch) {
		texts, vectors := prepared.rows(chunks)
		if _, err := queries.ChunkInsertMany(ctx, tx, texts); err != nil {
			return fmt.Errorf("insert %d chunks: %w", len(texts.Ids), err)
		}
		if err := queries.EmbeddingInsertMany(ctx, tx, vectors); err != nil {
			return fmt.Errorf("insert %d vectors: %w", len(vectors.ChunkIds), err)
		}
	}
	names, err := db.TagNames(prepared.Document.Tags)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return nil
	}
	if err := queries.TagInsertMany(ctx, tx, db.TagInsertManyParams{ProjectID: prepared.Document.ProjectID, Names: names}); err != nil {
		return fmt.Errorf("insert tags: %w", err)
	}
	return nil
}

// cleanTitle makes one line of a title.
func cleanTitle(title string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r == 0 || r == '\uFEFF' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(title, "\uFFFD"))), " ")
}

// vectorText spells a vector as pgvector reads it.
func vectorText(vector []float32) string {
	buf := make([]byte, 0, len(vector)*12)
	buf = append(buf, '[')
	for i, value := range vector {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = strconv.AppendFloat(buf, float64(value), 'g', 7, 32)
	}
	return string(append(buf, ']'))
}
