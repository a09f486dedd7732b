package api

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/worker/job"
)

var errFormTooLarge = multipart.ErrMessageTooLarge

// maxTitle and maxTag bound what is no text but a name, in characters.
const (
	maxTitle    = 1000
	maxTag      = 200
	maxTags     = 100
	maxFilename = 255
)

// noteFilename is the name under which a note's text is kept.
const noteFilename = "note.txt"

type uploadForm struct {
	File    huma.FormFile `form:"file" required:"false" doc:"The file; its name's extension says how it is read"`
	Note    string        `form:"note" required:"false" doc:"The text of a note, in place of a file"`
	Title   string        `form:"title" required:"false" doc:"The title. Defaults to the one in the content, else to the file's name"`
	Tags    []string      `form:"tags" required:"false" doc:"Tag names: repeated, or separated by commas, or a JSON object of strings"`
	DocType string        `form:"doc_type" required:"false" doc:"The document type: code, data, markdown, note or pdf. Defaults to what the extension says"`
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
	Tags     json.RawMessage
	Hash     []byte
	Size     int64
	// field is the part of the form that the content came in.
	field   string
	content io.ReadSeeker
	close   func() error
}

// Close lets go of the upload's temporary file.
func (u *upload) Close() {
	if u.close != nil {
		_ = u.close()
	}
}

func newUpload(form *uploadForm, limit int64) (*upload, error) {
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
	var err error
	if u.Tags, err = parseTags("body.tags", form.Tags); err != nil {
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
	if err := job.CheckType(u.Filename, u.DocType); err != nil {
		return nil, unsupported(err)
	}
	if u.Size > limit {
		return nil, errTooLarge(limit)
	}
	return u, u.hash()
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

func unsupported(err error) error {
	var typeErr *job.TypeError
	if !errors.As(err, &typeErr) {
		return err
	}
	return &Error{
		status: http.StatusUnprocessableEntity, Short: "unsupported file type", Code: typeErr.Code, Message: typeErr.Message,
		Supported: job.SupportedExtensions(),
	}
}

// parseTags reads tag names: repeated, separated by commas, or a JSON object of strings.
func parseTags(field string, values []string) (json.RawMessage, error) {
	var names []string
	for _, value := range values {
		value = strings.TrimSpace(value)
		if strings.HasPrefix(value, "{") {
			var bag map[string]string
			if err := json.Unmarshal([]byte(value), &bag); err != nil {
				return nil, errInvalid(field, "The tags look like JSON but are not an object whose values are strings.")
			}
			for key, value := range bag {
				if value != "" {
					key += ":" + value
				}
				names = append(names, key)
			}
			continue
		}
		names = append(names, strings.Split(value, ",")...)
	}
	names, err := cleanTags(field, names)
	return db.TagBag(names), err
}

// cleanTags gives tag names as they are stored, without blank ones.
func cleanTags(field string, names []string) ([]string, error) {
	cleaned := make([]string, 0, len(names))
	for _, name := range names {
		name = cleanLine(name)
		if key, value, _ := strings.Cut(name, ":"); value == "" {
			name = key
		}
		if utf8.RuneCountInString(name) > maxTag {
			return nil, errInvalid(field, "A tag has more than %d characters.", maxTag)
		}
		if name != "" {
			cleaned = append(cleaned, name)
		}
	}
	if len(cleaned) > maxTags {
		return nil, errInvalid(field, "There are more than %d tags.", maxTags)
	}
	return cleaned, nil
}

// cleanLine makes one line of valid text: no NUL, no control characters, no outer spaces.
func cleanLine(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), r == '\uFEFF':
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD")))
}

// cleanFilename keeps the last part of a name: no folders of any system, nothing hidden, at most 255 bytes.
func cleanFilename(name string) string {
	name = path.Base(strings.ReplaceAll(cleanLine(name), `\`, "/"))
	name = strings.TrimLeft(name, ". ")
	if name == "/" {
		return ""
	}
	if len(name) > maxFilename {
		extension := path.Ext(name)
		name = strings.ToValidUTF8(name[:max(maxFilename-len(extension), 0)], "") + extension
	}
	return name
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
