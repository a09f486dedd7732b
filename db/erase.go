package db

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// tenantTables are all tables with rows of projects, in an order in which they can be erased: what refers before what it
// refers to. A test compares them with the database.
var tenantTables = []string{
	"search_feedback", "searches", "memory_assertions", "memory_embeddings", "memory_words", "memories", "memory_stores", "embeddings", "chunk_words", "chunks", "document_versions", "documents", "jobs", "tags", "lexeme_deltas", "lexeme_stats", "corpus_stats",
	"api_key_policies", "api_keys", "embedding_usage",
}

// eraseBatch is how many rows one transaction erases: a lock is not held, nor a snapshot kept, for a whole project.
const eraseBatch = 5000

// CountProject counts a project's rows by table.
func CountProject(ctx context.Context, conn Conn, projectID uuid.UUID) (map[string]int64, error) {
	counts := make(map[string]int64, len(tenantTables))
	for _, table := range tenantTables {
		var n int64
		if err := conn.QueryRow(ctx, "SELECT count(*) FROM "+table+" WHERE project_id = $1", projectID).Scan(&n); err != nil {
			return nil, fmt.Errorf("count %s: %w", table, err)
		}
		counts[table] = n
	}
	return counts, nil
}

// EraseProject deletes all rows of a project that was marked as erased, and the project, and ends its receipt. What was
// counted before goes into the receipt, together with counts of other things; what is interrupted goes on where it was.
// What a request that had begun before still writes is erased, too.
func EraseProject(ctx context.Context, conn Conn, projectID uuid.UUID, others map[string]int64) (map[string]int64, error) {
	receipt, err := New().ErasureGet(ctx, conn, projectID)
	if err != nil {
		return nil, fmt.Errorf("read the receipt: %w", err)
	}
	erased := map[string]int64{}
	if err := json.Unmarshal(receipt.Erased, &erased); err != nil {
		return nil, fmt.Errorf("read the receipt: %w", err)
	}
	for name, n := range others {
		erased[name] += n
	}
	for _, table := range tenantTables {
		if err := eraseTable(ctx, conn, projectID, table, erased); err != nil {
			return nil, err
		}
	}
	err = InTx(ctx, conn, func(tx pgx.Tx) error {
		// Whoever still writes into the project holds it; from here on nobody can. What came in since is erased as well.
		if _, err := tx.Exec(ctx, "SELECT FROM projects WHERE id = $1 FOR UPDATE", projectID); err != nil {
			return fmt.Errorf("lock the project: %w", err)
		}
		for _, table := range tenantTables {
			tag, err := tx.Exec(ctx, "DELETE FROM "+table+" WHERE project_id = $1", projectID)
			if err != nil {
				return fmt.Errorf("erase %s: %w", table, err)
			}
			erased[table] += tag.RowsAffected()
		}
		if _, err := tx.Exec(ctx, "DELETE FROM projects WHERE id = $1", projectID); err != nil {
			return fmt.Errorf("erase the project: %w", err)
		}
		remaining, err := CountProject(ctx, tx, projectID)
		if err != nil {
			return err
		}
		return finishErasure(ctx, tx, projectID, erased, remaining)
	})
	return erased, err
}

// eraseTable deletes a project's rows of one table, and keeps the count with them.
func eraseTable(ctx context.Context, conn Conn, projectID uuid.UUID, table string, erased map[string]int64) error {
	for {
		var deleted int64
		err := InTx(ctx, conn, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, fmt.Sprintf(
				"DELETE FROM %[1]s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %[1]s WHERE project_id = $1 LIMIT %[2]d))", table, eraseBatch), projectID)
			if err != nil {
				return fmt.Errorf("erase %s: %w", table, err)
			}
			deleted = tag.RowsAffected()
			erased[table] += deleted
			counts, err := json.Marshal(erased)
			if err != nil {
				return err
			}
			return New().ErasureAdvance(ctx, tx, ErasureAdvanceParams{ProjectID: projectID, Erased: counts})
		})
		if err != nil || deleted < eraseBatch {
			return err
		}
	}
}

func finishErasure(ctx context.Context, tx pgx.Tx, projectID uuid.UUID, erased, remaining map[string]int64) error {
	counts, err := json.Marshal(erased)
	if err != nil {
		return err
	}
	left, err := json.Marshal(remaining)
	if err != nil {
		return err
	}
	if err := New().ErasureAdvance(ctx, tx, ErasureAdvanceParams{ProjectID: projectID, Erased: counts}); err != nil {
		return fmt.Errorf("write the receipt: %w", err)
	}
	if err := New().ErasureFinish(ctx, tx, ErasureFinishParams{ProjectID: projectID, Remaining: left}); err != nil {
		return fmt.Errorf("end the receipt: %w", err)
	}
	return nil
}
