// Package memory owns the rules by which memories are written: which text is the same as one that is there, which takes its
// place, and what a change of a memory changes besides. It knows no HTTP, and leaves reading to db and to package search. Its
// invariant: whoever changes which memories of a store are valid holds the store's lock, so that each decision sees all earlier
// ones; and a memory's words, vector and statistics change in the transaction that changes the memory.
package memory

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed"
)

const (
	// MaxBatch is how many entries a batch may have.
	MaxBatch = 10_000
	// MaxContent is how many bytes a memory's text may have.
	MaxContent = 64 << 10
)

// The similarities from which a text is the same as one that is there, or takes its place, when neither the request nor the
// store has its own.
const (
	DefaultDuplicateThreshold = 0.95
	DefaultSupersedeThreshold = 0.90
)

// The errors of a Writer, besides the types below. Their texts are for callers.
var (
	// ErrStoreNotFound is a memory store that the project does not have.
	ErrStoreNotFound = errors.New("memory store not found")
	// ErrNotFound is a memory that the project does not have.
	ErrNotFound = errors.New("memory not found")
	// ErrInvalidated is a change to a memory that was superseded or retracted before.
	ErrInvalidated = errors.New("the memory has been invalidated already")
)

// InvalidError is a request that can't be carried out as it is.
type InvalidError struct {
	// Field is the field to change, Message what it must be.
	Field, Message string
}

func (e *InvalidError) Error() string { return e.Field + " " + e.Message }

// VersionError is a change to a memory that is not the version which the caller has read.
type VersionError struct {
	// Current is the version that it is.
	Current int32
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("the memory has changed meanwhile: it is version %d now", e.Current)
}

// EntryError is what is wrong with one entry of a batch.
type EntryError struct {
	// Index is the place of the entry, from 0.
	Index int
	Err   error
}

func (e *EntryError) Error() string { return fmt.Sprintf("entry %d: %v", e.Index, e.Err) }

// Unwrap gives the error itself.
func (e *EntryError) Unwrap() error { return e.Err }

// Spaces gives the embedding space that is active now.
type Spaces interface {
	Current(ctx context.Context) (embed.Stored, error)
}

// Writer writes memories. It is safe for concurrent use.
type Writer struct {
	conn   db.Conn
	spaces Spaces
	logger *slog.Logger
}

// NewWriter makes a writer that embeds for the active one of spaces.
func NewWriter(conn db.Conn, spaces Spaces, logger *slog.Logger) *Writer {
	return &Writer{conn: conn, spaces: spaces, logger: logger}
}

// Author is who writes, and how it came to that; it goes into the assertions.
type Author struct {
	Mechanism    db.MemoryMechanism
	Principal    string
	RuleID       *string
	GenerationID *string
}

// Options say where to write, and how to decide about texts that are near others.
type Options struct {
	ProjectID, StoreID uuid.UUID
	Author             Author
	// Policy is what the author may see (auth.MemoryFilter as JSON). A text is compared with those memories only, since the
	// answer shows the memory that is there, and a new one inherits from the one it supersedes. Nil is all of them.
	Policy json.RawMessage
	// DuplicateThreshold and SupersedeThreshold go over those of the store, which go over the defaults.
	DuplicateThreshold, SupersedeThreshold *float64
	// Deduplicate of false keeps every text, as it is; nil is as the store has it.
	Deduplicate *bool
	// DryRun answers what would happen, and changes nothing. The ids in its answer are of no memory.
	DryRun bool
}

// Entry is a text to remember.
type Entry struct {
	Content string
	// SourceType defaults to manual.
	SourceType db.MemorySource
	SourceID   *string
	// Tags and Metadata are JSON objects; nil is an empty one.
	Tags, Metadata json.RawMessage
	// ExpiresAt is when the memory is forgotten; nil for never.
	ExpiresAt *time.Time
	// Supersedes names the memory whose place the text takes, whatever else is near it.
	Supersedes *uuid.UUID
	// CreatedAt and UpdatedAt are for imports; nil is now.
	CreatedAt, UpdatedAt *time.Time
}

// Result is what came of an entry.
type Result struct {
	// Outcome is created, superseded or skipped.
	Outcome db.MemoryOutcome
	// Memory is the new memory, or the one that is there already when the entry was skipped.
	Memory db.Memory
	// Similarity is that to the nearest valid memory; nil when none was looked for, or none was there.
	Similarity *float64
	// Superseded is the memory whose place the new one took.
	Superseded *uuid.UUID
}

// CheckThresholds says whether a store may have these thresholds; nil stands for a default. Its error is an *InvalidError.
func CheckThresholds(duplicate, supersede *float64) error {
	_, _, err := thresholds(Options{}, db.MemoryStore{DuplicateThreshold: duplicate, SupersedeThreshold: supersede})
	return err
}

func thresholds(options Options, store db.MemoryStore) (duplicate, supersede float64, err error) {
	duplicate, supersede = DefaultDuplicateThreshold, DefaultSupersedeThreshold
	duplicate = *cmp.Or(options.DuplicateThreshold, store.DuplicateThreshold, &duplicate)
	supersede = *cmp.Or(options.SupersedeThreshold, store.SupersedeThreshold, &supersede)
	switch {
	case !(duplicate >= 0 && duplicate <= 1):
		err = &InvalidError{Field: "duplicate_threshold", Message: "must be between 0 and 1"}
	case !(supersede >= 0 && supersede <= 1):
		err = &InvalidError{Field: "supersede_threshold", Message: "must be between 0 and 1"}
	case supersede >= duplicate:
		err = &InvalidError{
			Field: "supersede_threshold", Message: fmt.Sprintf("is %g, must be less than duplicate_threshold, which is %g", supersede, duplicate),
		}
	}
	return duplicate, supersede, err
}

func deduplicates(options Options, store db.MemoryStore) bool {
	return *cmp.Or(options.Deduplicate, &store.Deduplicate)
}

// contentHash is the same for texts that differ in nothing but white space.
func contentHash(content string) []byte {
	hash := sha256.Sum256([]byte(strings.Join(strings.Fields(content), " ")))
	return hash[:]
}

func checkContent(content string) error {
	switch {
	case strings.TrimSpace(content) == "":
		return &InvalidError{Field: "content", Message: "must not be blank"}
	case len(content) > MaxContent:
		return &InvalidError{Field: "content", Message: fmt.Sprintf("has %d bytes, must have at most %d", len(content), MaxContent)}
	case strings.ContainsRune(content, 0):
		return &InvalidError{Field: "content", Message: "must not hold the character NUL"}
	}
	return nil
}

// object gives a JSON object: an empty one for none, or for null.
func object(value json.RawMessage) json.RawMessage {
	if value = bytes.TrimSpace(value); len(value) == 0 || string(value) == "null" {
		return json.RawMessage("{}")
	}
	return value
}
