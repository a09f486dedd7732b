package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kb-search/kb/worker/job"
)

var errFormTooLarge = multipart.ErrMessageTooLarge

// noteFilename is the name under which a note's text is kept.
const noteFilename = "note.txt"

type uploadForm struct {
	File    huma.FormFile `form:"file" required:"false" doc:"The file; its name's extension says how it is read"`
	Note    string        `form:"note" required:"false" doc:"The text of a note, in place of a file"`
	Title   string        `form:"title" required:"false" doc:"The title. Defaults to the one in the content, else to the file's name"`
	Tags    []string      `form:"tags" required:"false" doc:"Tag names: repeated, or separated by commas, or a JSON object of strings"`
	DocType string        `form:"doc_type" required:"false" doc:"The document type, such as code, data, markdown, note or pdf. Defaults to what content and extension say"`

	Path       string `form:"path" required:"false" doc:"Where the file stands in your own tree, such as /manuals/pump.md. Defaults to / and the file's name; a note has none" example:"/manuals/pump.md"`
	OnConflict string `form:"on_conflict" required:"false" enum:"version,reject,duplicate" doc:"What happens when a document stands at the path already: version replaces it and keeps the old text as an earlier version, reject is 409, duplicate makes a second document beside it, whose path has a number before the extension, such as /manuals/pump (2).md. Defaults to version when a path is sent, else to duplicate"`

	ProjectID string `form:"project_id" required:"false" doc:"The project, for callers who have several"`

	KnowledgeType string `form:"knowledge_type" required:"false" doc:"What kind of knowledge it is, in your own words, such as manual or fault_case"`
	Metadata      string `form:"metadata" required:"false" doc:"A JSON object; it goes over what the file says about itself"`

	ChunkSize     int    `form:"chunk_size" required:"false" minimum:"0" doc:"The largest chunk in tokens, title and section included. Defaults to KB_CHUNK_SIZE"`
	ChunkOverlap  int    `form:"chunk_overlap" required:"false" minimum:"0" doc:"How many tokens of a chunk the next one repeats. Defaults to KB_CHUNK_OVERLAP"`
	ChunkStrategy string `form:"chunk_strategy" required:"false" enum:"section,page" doc:"What a chunk never reaches over. Defaults to KB_CHUNK_STRATEGY"`
}

// formFields are the names of all fields of uploadForm.
var formFields = func() (names []string) {
	for field := range reflect.TypeFor[uploadForm]().Fields() {
		names = append(names, field.Tag.Get("form"))
	}
	return names
}()

// refuseUnknownFields treats a form as JSON bodies are treated: a field with a slip of the pen is not passed over.
func refuseUnknownFields(form *multipart.Form) *Error {
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(form.Value)), slices.Sorted(maps.Keys(form.File))) {
		if !slices.Contains(formFields, name) {
			return errInvalid("body."+cleanLine(name), "The form has an unknown field; the fields are %s.", strings.Join(formFields, ", "))
		}
	}
	return nil
}

// upload is a checked upload, ready to be staged.
type upload struct {
	Filename string
	Title    string
	DocType  string
	// Path is nil for a note without one.
	Path          *string
	OnConflict    string
	KnowledgeType *string
	Tags          json.RawMessage
	Metadata      json.RawMessage
	Chunking      json.RawMessage
	Hash          []byte
	Size          int64
	// field is the part of the form that the content came in.
	field   string
	content content
	close   func() error
}

// content is the bytes of an upload.
type content interface {
	io.ReadSeeker
	io.ReaderAt
}

// Close lets go of the upload's temporary file.
func (u *upload) Close() {
	if u.close != nil {
		_ = u.close()
	}
}

func (s *Server) newUpload(ctx context.Context, in *huma.MultipartFormFiles[uploadForm]) (*upload, error) {
	form, limit := in.Data(), s.MaxUploadBytes
	hasFile, hasNote := form.File.IsSet, form.Note != ""
	switch {
	case hasFile && hasNote:
		return nil, errInvalid("body.note", "Send a file or a note, not both.")
	case !hasFile && !hasNote:
		return nil, errInvalid("body.file", "Send a file with a file name, or a note with text in it.")
	}
	u := &upload{Title: cleanLine(form.Title)}
	if utf8.RuneCountInString(u.Title) > maxTitle {
		return nil, errInvalid("body.title", "The title has more than %d characters.", maxTitle)
	}
	if err := u.describe(form); err != nil {
		return nil, err
	}
	if err := s.setChunking(ctx, u, in); err != nil {
		return nil, err
	}
	if hasNote {
		u.field, u.Filename, u.DocType = "body.note", noteFilename, job.TypeNote
		u.content, u.Size = strings.NewReader(form.Note), int64(len(form.Note))
	} else {
		u.field, u.Filename, u.DocType = "body.file", cleanFilename(form.File.Filename), form.DocType
		u.content, u.Size, u.close = form.File, form.File.Size, form.File.Close
		if u.Filename == "" {
			return nil, errInvalid("body.file", "The file has no name; its extension says how it is read.")
		}
	}
	if err := u.setPath(form); err != nil {
		return nil, err
	}
	if u.Size > limit {
		return nil, errTooLarge(limit)
	}
	if err := s.FileTypes.Check(u.Filename, u.DocType, u.content, u.Size); err != nil {
		return nil, s.unsupported(err)
	}
	return u, u.hash()
}

// describe reads what the caller says about the document.
func (u *upload) describe(form *uploadForm) error {
	var err error
	if u.Tags, err = parseTags("body.tags", form.Tags); err != nil {
		return err
	}
	if u.Metadata, err = parseMetadata("body.metadata", form.Metadata); err != nil {
		return err
	}
	if kind := cleanLine(form.KnowledgeType); utf8.RuneCountInString(kind) > maxTag {
		return errInvalid("body.knowledge_type", "The knowledge_type has more than %d characters.", maxTag)
	} else if kind != "" {
		u.KnowledgeType = &kind
	}
	return nil
}

// setChunking reads how the document is to be cut.
func (s *Server) setChunking(ctx context.Context, u *upload, in *huma.MultipartFormFiles[uploadForm]) error {
	form := in.Data()
	chunking := job.Chunking{Size: form.ChunkSize, Strategy: form.ChunkStrategy}
	if len(in.Form.Value["chunk_overlap"]) > 0 {
		chunking.Overlap = &form.ChunkOverlap
	}
	err := s.CheckChunking(ctx, chunking)
	var impossible *job.ChunkingError
	if errors.As(err, &impossible) {
		return errInvalid("body.chunk_size", "The document can't be cut like that: %s.", impossible.Message)
	}
	if err != nil {
		return fmt.Errorf("check the chunking: %w", err)
	}
	if u.Chunking, err = json.Marshal(chunking); err != nil {
		return fmt.Errorf("write the chunking: %w", err)
	}
	return nil
}

// setPath reads where the file stands, and what happens when a document is there already.
func (u *upload) setPath(form *uploadForm) error {
	u.OnConflict = form.OnConflict
	path, err := cleanPath("body.path", form.Path)
	if err != nil {
		return err
	}
	switch {
	case path != "":
		u.Path, u.OnConflict = &path, cmp.Or(u.OnConflict, job.ConflictVersion)
	case u.field == "body.file":
		path = "/" + u.Filename
		u.Path, u.OnConflict = &path, cmp.Or(u.OnConflict, job.ConflictDuplicate)
	case u.OnConflict != "":
		return errInvalid("body.on_conflict", "A note without a path conflicts with nothing; send a path too.")
	default:
		u.OnConflict = job.ConflictDuplicate
	}
	return nil
}

// hash reads the content once: for its SHA-256, and to refuse one that is blank.
func (u *upload) hash() error {
	digest := sha256.New()
	blank := &blankWriter{blank: true}
	if _, err := io.Copy(io.MultiWriter(digest, blank), u.content); err != nil {
		return fmt.Errorf("read the upload: %w", err)
	}
	if blank.blank {
		return errInvalid(u.field, "The upload has no text in it.")
	}
	if _, err := u.content.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read the upload again: %w", err)
	}
	u.Hash = digest.Sum(nil)
	return nil
}

// stage writes the upload to the staging area.
func (s *Server) stage(ctx context.Context, key string, u *upload) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := s.Bucket.NewWriter(ctx, key, nil)
	if err != nil {
		return fmt.Errorf("stage the upload: %w", err)
	}
	if _, err := io.Copy(w, u.content); err != nil {
		cancel() // a cancelled writer leaves nothing behind
		_ = w.Close()
		return fmt.Errorf("stage the upload: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("stage the upload: %w", err)
	}
	return nil
}

func (s *Server) unsupported(err error) error {
	var typeErr *job.TypeError
	if !errors.As(err, &typeErr) {
		return err
	}
	return &Error{
		status: http.StatusUnprocessableEntity, Short: "unsupported file type", Code: typeErr.Code, Message: typeErr.Message,
		Supported: s.FileTypes.Extensions(),
	}
}

// blankWriter notices whether anything but white space and zero bytes is written to it.
type blankWriter struct{ blank bool }

func (w *blankWriter) Write(p []byte) (int, error) {
	for _, b := range p {
		if !w.blank {
			break
		}
		w.blank = b == ' ' || b == '\t' || b == '\n' || b == '\r' || b == '\f' || b == '\v' || b == 0
	}
	return len(p), nil
}
