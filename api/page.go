package api

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

const maxPage = 100

// PageInput is what every list takes. It is exported since huma passes over embedded structs that are not.
type PageInput struct {
	Limit  int    `query:"limit" minimum:"1" default:"50" doc:"The largest number of rows; more than 100 are cut to 100"`
	Cursor string `query:"cursor" doc:"Where the next page begins, from the Link header of the page before"`
}

func (p PageInput) size() int32 { return int32(min(p.Limit, maxPage)) }

// PageOutput is what every list says beside its rows.
type PageOutput struct {
	Total int64  `header:"X-Total-Count" doc:"The number of rows on all pages"`
	Link  string `header:"Link" doc:"The next page, as rel=\"next\"; absent on the last one"`
}

// cutPage cuts rows, of which one more than a page was asked for, to the page; more says that there is a next one.
func cutPage[T any](page PageInput, rows []T) (_ []T, more bool) {
	if len(rows) <= int(page.size()) {
		return rows, false
	}
	return rows[:page.size()], true
}

// nextLink gives the Link header of a page that is not the last one.
func nextLink(ctx context.Context, path string, query url.Values, page PageInput, cursor string) string {
	if named := accessOf(ctx).inQuery; named != "" {
		query.Set(projectQuery, named)
	}
	query.Set("limit", strconv.Itoa(int(page.size())))
	query.Set("cursor", cursor)
	return fmt.Sprintf("<%s?%s>; rel=\"next\"", path, query.Encode())
}

// cursor names the last row of a page by its time and id.
type cursor struct {
	Time time.Time
	ID   uuid.UUID
}

func (c cursor) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(c.Time.UTC().Format(time.RFC3339Nano) + " " + c.ID.String()))
}

// parseCursor reads a cursor; nil for none.
func parseCursor(text string) (*cursor, error) {
	if text == "" {
		return nil, nil
	}
	invalid := errInvalid("query.cursor", "The cursor is not one that a list gave; leave it out to begin at the first page.")
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, invalid
	}
	at, id, found := strings.Cut(string(decoded), " ")
	if !found {
		return nil, invalid
	}
	parsedTime, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return nil, invalid
	}
	parsedID, err := uuid.Parse(id)
	if err != nil {
		return nil, invalid
	}
	return &cursor{Time: parsedTime, ID: parsedID}, nil
}

// OffsetInput is what the lists of the knowledge API take. It is exported since huma passes over embedded structs that are not.
type OffsetInput struct {
	Limit  int `query:"limit" minimum:"1" default:"50" doc:"The largest number of rows; more than 100 are cut to 100"`
	Offset int `query:"offset" minimum:"0" maximum:"1000000000" default:"0" doc:"How many rows to pass over"`
}

func (p OffsetInput) size() int32 { return int32(min(p.Limit, maxPage)) }

// pageBody is a page of a list of the knowledge API.
type pageBody[T any] struct {
	_      struct{} `additionalProperties:"true"`
	Data   []T      `json:"data" doc:"The rows"`
	Total  int64    `json:"total" doc:"The number of rows on all pages"`
	Limit  int32    `json:"limit" doc:"The largest number of rows on a page"`
	Offset int      `json:"offset" doc:"How many rows were passed over"`
}

type pageOutput[T any] struct {
	Body pageBody[T]
}

// newPage makes a page of the rows that the database gave for it.
func newPage[R, T any](in OffsetInput, total int64, rows []R, body func(R) T) *pageOutput[T] {
	out := &pageOutput[T]{Body: pageBody[T]{Data: make([]T, len(rows)), Total: total, Limit: in.size(), Offset: in.Offset}}
	for i, row := range rows {
		out.Body.Data[i] = body(row)
	}
	return out
}

// pageOf cuts a page out of all rows.
func pageOf[R, T any](in OffsetInput, rows []R, body func(R) T) *pageOutput[T] {
	total := int64(len(rows))
	rows = rows[min(in.Offset, len(rows)):]
	return newPage(in, total, rows[:min(int(in.size()), len(rows))], body)
}
