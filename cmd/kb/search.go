package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/kb-search/kb/cmd/kb/client"
)

// snippetWidth is how much of a chunk a row shows, in characters.
const snippetWidth = 60

// search asks a server and prints a table with the parts of each score.
func (a *app) search(ctx context.Context, args []string) error {
	set := a.flags("search", "[FLAGS] WORDS...")
	top := set.Int("top", 10, "the largest `number` of results")
	tags := set.String("tags", "", "only documents with these tag `names`, separated by commas")
	docType := set.String("type", "", "only documents of this `type`")
	arm := set.String("arm", "hybrid", "hybrid, lexical or semantic")
	words, err := arguments(set, args)
	if err != nil {
		return err
	}
	query := strings.Join(words, " ")
	if strings.TrimSpace(query) == "" {
		return usageError("write what to look for")
	}
	request := map[string]any{"query": query, "top": *top, "explain": true}
	if *tags != "" {
		request["tags"] = strings.Split(*tags, ",")
	}
	if *docType != "" {
		request["doc_type"] = *docType
	}
	switch *arm {
	case "hybrid":
	case "lexical":
		request["fts_only"] = true
	case "semantic":
		request["vec_only"] = true
	default:
		return usageError("there is no arm %q: write hybrid, lexical or semantic", *arm)
	}
	started := time.Now()
	answer, err := a.client().Search(ctx, request)
	if err != nil {
		return err
	}
	return a.writeAnswer(answer, time.Since(started))
}

func (a *app) writeAnswer(answer client.Answer, took time.Duration) error {
	_, _ = fmt.Fprintf(a.stdout, "%s, %d of %d candidates, %s\n", answer.Status, len(answer.Results), answer.TotalMatches, took.Round(100*time.Microsecond))
	if answer.Banner != nil {
		_, _ = fmt.Fprintln(a.stdout, *answer.Banner)
	}
	if len(answer.Degraded) > 0 {
		_, _ = fmt.Fprintf(a.stdout, "without: %s\n", strings.Join(answer.Degraded, ", "))
	}
	if len(answer.Results) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "#\tSCORE\tBM25\tRANK\tCOSINE\tRANK\tBONUS\tTITLE\tTEXT")
	for i, result := range answer.Results {
		e := result.Explain
		_, _ = fmt.Fprintf(table, "%d\t%.4f\t%s\t%s\t%s\t%s\t%.2f\t%s\t%s\n", i+1, result.Score,
			number(e.FTSScore, "%.2f"), number(e.FTSRank, "%d"), number(e.VecScore, "%.3f"), number(e.VecRank, "%d"), e.Bonus,
			oneLine(result.Title, snippetWidth/2), oneLine(result.Text, snippetWidth))
	}
	return table.Flush()
}

// number prints a value that may be absent.
func number[T any](value *T, format string) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprintf(format, *value)
}

// oneLine folds white space and cuts a text to so many characters.
func oneLine(text string, width int) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

// health asks a server whether it is ready; the exit code tells.
func (a *app) health(ctx context.Context, _ []string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := client.New(a.config.URL, "").Health(ctx); err != nil {
		return err
	}
	_, err := fmt.Fprintln(a.stdout, "healthy")
	return err
}
