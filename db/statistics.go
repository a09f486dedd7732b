package db

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// foldBatch bounds the delta rows that one transaction folds.
const foldBatch = 500

// FoldStatistics folds all of a project's pending deltas into its statistics, in transactions of bounded size.
func FoldStatistics(ctx context.Context, conn Conn, projectID uuid.UUID) error {
	for {
		var folded int64
		err := InTx(ctx, conn, func(tx pgx.Tx) error {
			if err := New().StatisticsLock(ctx, tx, projectID); err != nil {
				return err
			}
			var err error
			folded, err = New().StatisticsFold(ctx, tx, StatisticsFoldParams{ProjectID: projectID, MaxDeltas: foldBatch})
			return err
		})
		if err != nil {
			return fmt.Errorf("fold the statistics of project %s: %w", projectID, err)
		}
		if folded < foldBatch {
			return nil
		}
	}
}

// Analyze tells the planner about rows that have just come in large number. Autovacuum does the same later.
func Analyze(ctx context.Context, conn Conn) error {
	for _, table := range []string{"documents", "chunks", "chunk_words", "embeddings", "memories", "memory_words", "memory_embeddings", "lexeme_stats"} {
		if _, err := conn.Exec(ctx, "VACUUM (ANALYZE) "+table); err != nil {
			return fmt.Errorf("analyze %s: %w", table, err)
		}
	}
	return nil
}
