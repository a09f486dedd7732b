package chunk_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/kb-search/kb/worker/chunk"
	"github.com/kb-search/kb/worker/parse"
)

func Example() {
	doc, err := parse.Parse(parse.Input{Name: "pump.md", Data: []byte(`# Pump manual

Keep it dry.

## Restart

Open the valve by a quarter turn before you press the red button. Wait until the lamp turns green. Then close the valve.
`)})
	if err != nil {
		fmt.Println(err)

		return
	}

	words := func(s string) int { return len(strings.Fields(s)) }
	chunks, err := chunk.Split(context.Background(), doc, doc.Title, chunk.Options{Size: 24, Count: words})
	if err != nil {
		panic(err)
	}
	for _, c := range chunks {
		fmt.Printf("%d [%s] %s\n", c.Seq, c.Section, c.Text)
	}
	// Output:
	// 0 [Pump manual] Keep it dry.
	// 1 [Pump manual > Restart] Open the valve by a quarter turn before you press the red button.
	// 2 [Pump manual > Restart] Wait until the lamp turns green. Then close the valve.
}
