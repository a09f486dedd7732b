package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed"
)

// fresh is how long Active may go by what it read before. Searches with the space of a moment ago are right: its vectors
// stay.
const fresh = time.Second

// Spaces gives the embedders of the embedding spaces that the database knows, opening each when it is first asked for. It
// is safe for concurrent use.
type Spaces struct {
	conn db.Conn
	open func(ctx context.Context, space embed.Space) (embed.Embedder, error)

	mu     sync.Mutex
	opened map[int32]embed.Stored
	active int32
	readAt time.Time
}

// NewSpaces makes Spaces of a database. open loads the model of a space; what it opens is its maker's to close.
func NewSpaces(conn db.Conn, open func(ctx context.Context, space embed.Space) (embed.Embedder, error)) *Spaces {
	return &Spaces{conn: conn, open: open, opened: map[int32]embed.Stored{}}
}

// Active gives the space that searches use, or used a second ago.
func (s *Spaces) Active(ctx context.Context) (embed.Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stored, known := s.opened[s.active]; known && time.Since(s.readAt) < fresh {
		return stored, nil
	}
	return s.read(ctx)
}

// Current gives the space that is active now.
func (s *Spaces) Current(ctx context.Context) (embed.Stored, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read(ctx)
}

func (s *Spaces) read(ctx context.Context) (embed.Stored, error) {
	row, err := db.New().EmbeddingSpaceGetActive(ctx, s.conn)
	if err != nil {
		return embed.Stored{}, fmt.Errorf("read the active embedding space: %w", err)
	}
	stored, err := s.get(ctx, row)
	if err == nil {
		s.active, s.readAt = row.ID, time.Now()
	}
	return stored, err
}

// Get gives a space by its id.
func (s *Spaces) Get(ctx context.Context, id int32) (embed.Stored, error) {
	row, err := db.New().EmbeddingSpaceGet(ctx, s.conn, id)
	if err != nil {
		return embed.Stored{}, fmt.Errorf("read embedding space %d: %w", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(ctx, row)
}

func (s *Spaces) get(ctx context.Context, row db.EmbeddingSpace) (embed.Stored, error) {
	if stored, known := s.opened[row.ID]; known {
		return stored, nil
	}
	embedder, err := s.open(ctx, embed.Space{Model: row.Model, Precision: row.Precision, SHA256: row.Sha256, Dimensions: int(row.Dimensions)})
	if err != nil {
		return embed.Stored{}, fmt.Errorf("open the model of embedding space %d: %w", row.ID, err)
	}
	stored := embed.Stored{Embedder: embedder, ID: row.ID}
	s.opened[row.ID] = stored
	return stored, nil
}
