package db

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
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

// EnsureSpace gives the embedding space of a model, making it and its vector indexes when it is new. It becomes the active
// one when there is none, or when the active one has no vectors; else a reindex makes it that.
func EnsureSpace(ctx context.Context, conn Conn, params EmbeddingSpaceInsertParams) (EmbeddingSpace, error) {
	if params.Dimensions > maxIndexedDimensions {
		return EmbeddingSpace{}, fmt.Errorf("vectors of %d numbers: pgvector indexes at most %d", params.Dimensions, maxIndexedDimensions)
	}
	var space EmbeddingSpace
	err := InTx(ctx, conn, func(tx pgx.Tx) error {
		queries := New()
		if err := queries.EmbeddingSpaceLock(ctx, tx); err != nil {
			return fmt.Errorf("lock the embedding spaces: %w", err)
		}
		var err error
		if space, err = queries.EmbeddingSpaceInsert(ctx, tx, params); err != nil {
			return fmt.Errorf("register the embedding space: %w", err)
		}
		// For the semantic arm of search.sql. m and ef_construction are pgvector's defaults: recall@10 0.97 at ef_search 100.
		for _, table := range vectorTables {
			_, err = tx.Exec(ctx, fmt.Sprintf(`CREATE INDEX IF NOT EXISTS %[1]s ON %[2]s
				USING hnsw ((embedding::halfvec(%[3]d)) halfvec_cosine_ops) WITH (m = 16, ef_construction = 64) WHERE space_id = %[4]d`,
				spaceIndex(table, space.ID), table, space.Dimensions, space.ID))
			if err != nil {
				return fmt.Errorf("index %s of the embedding space: %w", table, err)
			}
		}
		if space.Active {
			return nil
		}
		used, err := activeSpaceIsUsed(ctx, tx)
		if err != nil || used {
			return err
		}
		space, err = activateSpace(ctx, tx, space.ID)
		return err
	})
	return space, err
}

// vectorTables hold the vectors of chunks and of memories; each space has an index on both.
var vectorTables = []string{"embeddings", "memory_embeddings"}

func spaceIndex(table string, id int32) string { return fmt.Sprintf("%s_space_%d", table, id) }

func activeSpaceIsUsed(ctx context.Context, tx pgx.Tx) (bool, error) {
	active, err := New().EmbeddingSpaceGetActive(ctx, tx)
	if Kind(err) == KindNotFound {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the active embedding space: %w", err)
	}
	used, err := New().EmbeddingAny(ctx, tx, active.ID)
	if err != nil {
		return false, fmt.Errorf("look for vectors of embedding space %d: %w", active.ID, err)
	}
	return used, nil
}

func activateSpace(ctx context.Context, tx pgx.Tx, id int32) (EmbeddingSpace, error) {
	if err := New().EmbeddingSpaceDeactivate(ctx, tx); err != nil {
		return EmbeddingSpace{}, fmt.Errorf("deactivate the embedding space: %w", err)
	}
	space, err := New().EmbeddingSpaceActivate(ctx, tx, id)
	if err != nil {
		return EmbeddingSpace{}, fmt.Errorf("activate embedding space %d: %w", id, err)
	}
	return space, nil
}

// SwitchSpace makes a space the active one if each chunk and each valid memory has a vector in it, but for blank, and says
// whether it did. No document and no memory is stored meanwhile.
func SwitchSpace(ctx context.Context, conn Conn, id int32, blank []uuid.UUID) (switched bool, err error) {
	err = InTx(ctx, conn, func(tx pgx.Tx) error {
		if err := New().EmbeddingSpaceLock(ctx, tx); err != nil {
			return fmt.Errorf("lock the embedding spaces: %w", err)
		}
		missing, err := New().ReindexMissing(ctx, tx, ReindexMissingParams{SpaceID: id, Blank: blank, MaxResults: 1})
		if err != nil {
			return fmt.Errorf("look for chunks without a vector: %w", err)
		}
		if len(missing) > 0 {
			return nil
		}
		unseen, err := New().MemoryNext(ctx, tx, MemoryNextParams{SpaceID: id, Blank: blank, MaxResults: 1})
		if err != nil {
			return fmt.Errorf("look for memories without a vector: %w", err)
		}
		if len(unseen) > 0 {
			return nil
		}
		switched = true
		_, err = activateSpace(ctx, tx, id)
		return err
	})
	return switched, err
}

// DropSpace deletes a space's vectors and their indexes. The space stays known; EnsureSpace brings its indexes back.
func DropSpace(ctx context.Context, conn Conn, id int32) error {
	for _, table := range vectorTables {
		// Outside a transaction: searches go on while the index goes.
		if _, err := conn.Exec(ctx, "DROP INDEX CONCURRENTLY IF EXISTS "+spaceIndex(table, id)); err != nil {
			return fmt.Errorf("drop the index of embedding space %d on %s: %w", id, table, err)
		}
	}
	if _, err := New().EmbeddingDeleteSpace(ctx, conn, id); err != nil {
		return fmt.Errorf("delete the vectors of embedding space %d: %w", id, err)
	}
	if err := New().EmbeddingSpaceForget(ctx, conn, id); err != nil {
		return fmt.Errorf("forget embedding space %d: %w", id, err)
	}
	return nil
}
