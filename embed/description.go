package embed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// DescriptionFile describes a model beside its files, or beside those of a hub repository, for a model that kb does not
// know by name. All but the window may be left out:
//
//	{"window": 512, "dimensions": 384, "pooling": "mean", "query_prefix": "query: ", "passage_prefix": "passage: "}
const DescriptionFile = "kb-model.json"

// ReadDescription reads a DescriptionFile. Pooling defaults to Mean, dimensions to those of the graph, prefixes to none. The
// error names all that is wrong.
func ReadDescription(name string, data []byte) (Model, error) {
	var file struct {
		Window        int    `json:"window"`
		Dimensions    int    `json:"dimensions"`
		Pooling       string `json:"pooling"`
		QueryPrefix   string `json:"query_prefix"`
		PassagePrefix string `json:"passage_prefix"`
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return Model{}, fmt.Errorf("read %s of %s: %w", DescriptionFile, name, err)
	}
	m := Model{
		Name: name, Window: file.Window, Dimensions: file.Dimensions, QueryPrefix: file.QueryPrefix, PassagePrefix: file.PassagePrefix,
	}
	var problems []error
	switch file.Pooling {
	case "", Mean.String():
	case CLS.String():
		m.Pooling = CLS
	default:
		problems = append(problems, fmt.Errorf("pooling is %q: write mean or cls", file.Pooling))
	}
	if m.Window < 16 {
		problems = append(problems, fmt.Errorf("window is %d tokens: write how many the model reads, 16 or more", m.Window))
	}
	if m.Dimensions < 0 {
		problems = append(problems, fmt.Errorf("dimensions is %d: write how many numbers a vector has, or leave it out", m.Dimensions))
	}
	if err := errors.Join(problems...); err != nil {
		return Model{}, fmt.Errorf("read %s of %s: %w", DescriptionFile, name, err)
	}
	return m, nil
}
