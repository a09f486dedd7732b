package docling

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const maxNodes = 1_000_000

// errTooManyNodes says that a document has more items than are read.
var errTooManyNodes = errors.New("the document has too many items")

// document is a DoclingDocument as far as it is read: a tree whose nodes stand in lists and refer to each other.
type document struct {
	Body  node
	lists map[string][]*node
}

// node is an item or group of any kind.
type node struct {
	list string // The name of the list it stands in.

	Label      string `json:"label"`
	Layer      string `json:"content_layer"`
	Children   []ref  `json:"children"`
	Provenance []struct {
		Page int `json:"page_no"`
	} `json:"prov"`

	Text       string `json:"text"`
	Orig       string `json:"orig"`
	Level      int    `json:"level"`
	Enumerated bool   `json:"enumerated"`
	Marker     string `json:"marker"`

	Captions    []ref        `json:"captions"`
	Footnotes   []ref        `json:"footnotes"`
	Data        *table       `json:"data"`
	Annotations []annotation `json:"annotations"`
	Meta        *struct {
		Description *annotation `json:"description"`
	} `json:"meta"`
	Graph *struct {
		Cells []annotation `json:"cells"`
	} `json:"graph"`
}

// annotation is a text that is no node of its own.
type annotation struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// table holds cells in any order. The grid, which repeats them, is not read.
type table struct {
	Cells []cell `json:"table_cells"`
}

type cell struct {
	Text         string `json:"text"`
	Row          int    `json:"start_row_offset_idx"`
	Column       int    `json:"start_col_offset_idx"`
	ColumnHeader bool   `json:"column_header"`
	Ref          ref    `json:"ref"` // What the cell holds, where it is more than text.
}

// ref points to a node, as in "#/texts/0". Docling spells the key in two ways.
type ref struct {
	Ref  string `json:"$ref"`
	CRef string `json:"cref"`
}

// readDocument reads a document piece by piece. It is nil where the JSON is null.
func readDocument(dec *json.Decoder) (*document, error) {
	d := &document{lists: map[string][]*node{}}
	found, count := false, 0
	err := members(dec, func(key string) error {
		found = true
		switch key {
		case "body":
			return dec.Decode(&d.Body)
		case "texts", "groups", "tables", "pictures", "key_value_items", "form_items", "field_regions", "field_items":
			return elements(dec, func() error {
				if count++; count > maxNodes {
					return errTooManyNodes
				}
				n := &node{list: key}
				d.lists[key] = append(d.lists[key], n)

				return dec.Decode(n)
			})
		case "pages": // They may hold images.
			return members(dec, func(string) error { return dec.Decode(&ignored{}) })
		default:
			return dec.Decode(&ignored{})
		}
	})
	if err != nil || !found {
		return nil, err
	}

	return d, nil
}

// find returns the node that a reference points to, nil where there is none.
func (d *document) find(r ref) *node {
	pointer := r.Ref
	if pointer == "" {
		pointer = r.CRef
	}
	name, number, found := strings.Cut(strings.TrimPrefix(pointer, "#/"), "/")
	if !found {
		return nil
	}
	i, err := strconv.Atoi(number)
	if list := d.lists[name]; err == nil && i >= 0 && i < len(list) {
		return list[i]
	}

	return nil
}

// page returns the 1-indexed page that a node begins on, 0 where that is not known.
func (n *node) page() int {
	const most = 1 << 24
	if len(n.Provenance) == 0 || n.Provenance[0].Page < 0 || n.Provenance[0].Page > most {
		return 0
	}

	return n.Provenance[0].Page
}

// visible reports whether a node is part of the text and not of what stands around it on each page.
func (n *node) visible() bool {
	switch n.Layer {
	case "furniture", "background", "invisible":
		return false
	default:
		return n.Label != "page_header" && n.Label != "page_footer"
	}
}

// ignored takes any JSON value and keeps nothing of it.
type ignored struct{}

func (*ignored) UnmarshalJSON([]byte) error { return nil }

// members calls member after each key of an object, to read its value. A null has no members.
func members(dec *json.Decoder, member func(key string) error) error {
	return inside(dec, '{', func() error {
		token, err := dec.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string)

		return member(key)
	})
}

// elements calls element at each element of an array, to read it. A null has no elements.
func elements(dec *json.Decoder, element func() error) error { return inside(dec, '[', element) }

func inside(dec *json.Decoder, open json.Delim, next func() error) error {
	token, err := dec.Token()
	if err != nil || token == nil {
		return err
	}
	if token != open {
		return fmt.Errorf("found %v instead of %s", token, open)
	}
	for dec.More() {
		if err := next(); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}

		return err
	}

	return nil
}
