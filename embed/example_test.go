package embed_test

import (
	"context"
	"fmt"

	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/embedtest"
)

func ExampleLookup() {
	model, err := embed.Lookup("BAAI/bge-small-en-v1.5")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(model.Name, model.Pooling, model.Window, model.Dimensions)
	fmt.Println(model.Prefix(embed.Query) + "how do pumps leak?")
	// Output:
	// bge-small-en-v1.5 cls 512 384
	// Represent this sentence for searching relevant passages: how do pumps leak?
}

func ExampleCache() {
	cache := embed.NewCache(embedtest.New(), 16<<20)
	for range 3 {
		if _, err := cache.Embed(context.Background(), embed.Query, []string{"how do pumps leak?"}); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(cache.Stats().Hits, cache.Stats().Misses)
	// Output: 2 1
}
