package db

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// writtenDimensions is how the vector type stands in sql/queries/search.sql.
const writtenDimensions = "halfvec(384)"

// maxIndexedDimensions is pgvector's limit for an HNSW index over halfvec.
const maxIndexedDimensions = 4000

// WithDimensions gives conn for queries over vectors of another size than the one that sqlc was told: an index on a
// column without a dimension is found only by an expression that names it.
func WithDimensions(conn Conn, dimensions int32) Conn {
	inUse := fmt.Sprintf("halfvec(%d)", dimensions)
	if inUse == writtenDimensions {
		return conn
	}
	return dimensionsConn{Conn: conn, inUse: inUse}
}

type dimensionsConn struct {
	Conn
	inUse string
}

func (c dimensionsConn) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return c.Conn.Exec(ctx, strings.ReplaceAll(sql, writtenDimensions, c.inUse), args...)
}

func (c dimensionsConn) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return c.Conn.Query(ctx, strings.ReplaceAll(sql, writtenDimensions, c.inUse), args...)
}

func (c dimensionsConn) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return c.Conn.QueryRow(ctx, strings.ReplaceAll(sql, writtenDimensions, c.inUse), args...)
}

// SpaceMismatchError is a database whose vectors were made by another model than the one that is configured.
type SpaceMismatchError struct{ Stored, Configured EmbeddingSpace }

func (e *SpaceMismatchError) Error() string {
	return fmt.Sprintf("the stored vectors were made by %s (%s, %.12s), the configured model is %s (%s, %.12s): "+
		"set KB_MODEL and KB_MODEL_PRECISION back, or use another database",
		e.Stored.Model, e.Stored.Precision, e.Stored.Sha256, e.Configured.Model, e.Configured.Precision, e.Configured.Sha256)
}

// EnsureSpace gives the embedding space of a model, making it and its vector index when it is new. Vectors of two spaces
// never mix: a database that is active in another space is a *SpaceMismatchError.
func EnsureSpace(ctx context.Context, conn Conn, params EmbeddingSpaceInsertParams) (EmbeddingSpace, error) {
	var space EmbeddingSpace
	err := InTx(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('kb embedding space', 0))"); err != nil {
			return fmt.Errorf("lock the embedding spaces: %w", err)
		}
		var err error
		if space, err = New().EmbeddingSpaceInsert(ctx, tx, params); err != nil {
			return fmt.Errorf("register the embedding space: %w", err)
		}
		if !space.Active {
			stored, err := New().EmbeddingSpaceGetActive(ctx, tx)
			if err != nil {
				return fmt.Errorf("read the active embedding space: %w", err)
			}
			return &SpaceMismatchError{Stored: stored, Configured: space}
		}
		if space.Dimensions > maxIndexedDimensions {
			return fmt.Errorf("vectors of %d numbers: pgvector indexes at most %d", space.Dimensions, maxIndexedDimensions)
		}
		// For the semantic arm of search.sql. m and ef_construction are pgvector's defaults: recall@10 0.97 at ef_search 100.
		_, err = tx.Exec(ctx, fmt.Sprintf(`CREATE INDEX IF NOT EXISTS embeddings_space_%[1]d ON embeddings
			USING hnsw ((embedding::halfvec(%[2]d)) halfvec_cosine_ops) WITH (m = 16, ef_construction = 64) WHERE space_id = %[1]d`,
			space.ID, space.Dimensions))
		if err != nil {
			return fmt.Errorf("index the embedding space: %w", err)
		}
		return nil
	})
	return space, err
}
