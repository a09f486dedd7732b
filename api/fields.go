package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kb-search/kb/db"
)

// What is no text but a name is bounded, in characters; metadata in bytes.
const (
	maxTitle    = 1000
	maxTag      = 200
	maxTags     = 100
	maxFilename = 255
	maxPath     = 1000
	maxMetadata = 64 << 10
)

// What callers may read and filter on, but not write.
const (
	reservedPath = "/.system"
	reservedTag  = "system."
)

// parseTags reads tags that are to be stored, as tagBag takes them.
func parseTags(field string, values []string) (json.RawMessage, error) {
	bag, err := readTags(field, values)
	if err != nil {
		return nil, err
	}
	return tagBag(field, bag)
}

// readTags reads tags: names, repeated or separated by commas, or a JSON object of strings, whose pairs are kept as they
// are.
func readTags(field string, values []string) (map[string]string, error) {
	bag := map[string]string{}
	var names []string
	for _, value := range values {
		value = strings.TrimSpace(value)
		if !strings.HasPrefix(value, "{") {
			names = append(names, strings.Split(value, ",")...)
			continue
		}
		var pairs map[string]string
		if err := json.Unmarshal([]byte(value), &pairs); err != nil {
			return nil, errInvalid(field, "The tags look like JSON but are not an object whose values are strings.")
		}
		maps.Copy(bag, pairs)
	}
	names, err := cleanTags(field, names)
	if err != nil {
		return nil, err
	}
	maps.Copy(bag, db.TagPairs(names))
	return bag, checkTags(field, bag)
}

// readPairs reads a filter on tags, each as key:value. Values may hold colons and commas.
func readPairs(field string, values []string) (map[string]string, error) {
	bag := map[string]string{}
	for _, pair := range values {
		key, value, found := strings.Cut(pair, ":")
		if !found {
			return nil, errInvalid(field, "The tag %q has no colon; write key:value.", pair)
		}
		if other, twice := bag[key]; twice && other != value {
			return nil, errInvalid(field, "The tag %q is asked for with two values, which no memory has.", key)
		}
		bag[key] = value
	}
	return bag, checkTags(field, bag)
}

// checkTags holds a bag of tags to the limits.
func checkTags(field string, bag map[string]string) error {
	for key, value := range bag {
		switch {
		case strings.TrimSpace(key) == "":
			return errInvalid(field, "A tag has no name.")
		case utf8.RuneCountInString(key)+utf8.RuneCountInString(value) > maxTag:
			return errInvalid(field, "A tag has more than %d characters.", maxTag)
		case strings.ContainsRune(key+value, 0):
			return errInvalid(field, "A tag has a zero byte in it.")
		}
	}
	if len(bag) > maxTags {
		return errInvalid(field, "There are more than %d tags.", maxTags)
	}
	return nil
}

// tagBag writes a bag of tags that is to be stored; keys and values are kept as they are.
func tagBag(field string, bag map[string]string) (json.RawMessage, error) {
	if err := checkTags(field, bag); err != nil {
		return nil, err
	}
	if err := refuseReservedTags(field, bag); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(bag)
	if err != nil {
		return nil, fmt.Errorf("write the tags: %w", err)
	}
	return encoded, nil
}

// refuseReservedTags refuses a change to tags that are the server's own. Everyone may read and filter on them.
func refuseReservedTags(field string, bag map[string]string) error {
	for key := range bag {
		if strings.HasPrefix(key, reservedTag) {
			return errReserved(field, "reserved_tag_key", "Tags whose key begins with "+reservedTag+" are the server's own; choose another key.")
		}
	}
	return nil
}

func errReserved(field, code, message string) *Error {
	e := errInvalid(field, "%s", message)
	e.Code = code
	return e
}

// parseMetadata reads a JSON object; blank is an empty one.
func parseMetadata(field, text string) (json.RawMessage, error) {
	if strings.TrimSpace(text) == "" {
		return json.RawMessage("{}"), nil
	}
	if len(text) > maxMetadata {
		return nil, errInvalid(field, "The metadata has more than %d bytes.", maxMetadata)
	}
	object, err := db.DecodeObject([]byte(text))
	switch {
	case errors.Is(err, db.ErrUnstorable):
		return nil, errInvalid(field, "The metadata has a zero byte in it, or a number beyond 1e308.")
	case err != nil:
		return nil, errInvalid(field, "The metadata is no JSON object, such as {\"equipment\": \"P-100\"}.")
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("write the metadata: %w", err)
	}
	return encoded, nil
}

// filterMetadata adds a caller's conditions on metadata to a filter; blank adds none.
func filterMetadata(filter *db.DocumentFilter, field, text string) (err error) {
	if text == "" {
		return nil
	}
	filter.Metadata, filter.Tests, err = db.ParseMetadataFilter([]byte(text))
	var wrong *db.MetadataFilterError
	if errors.As(err, &wrong) {
		return errInvalid(wrong.Field(field), "%s", wrong.Message)
	}
	return err
}

// cleanPath gives a path as it is stored: absolute, without empty or dotted parts. Blank stays blank.
func cleanPath(field, text string) (string, error) {
	text = cleanLine(text)
	if text == "" {
		return "", nil
	}
	if utf8.RuneCountInString(text) > maxPath {
		return "", errInvalid(field, "The path has more than %d characters.", maxPath)
	}
	cleaned := path.Clean("/" + text)
	if cleaned == "/" {
		return "", errInvalid(field, "The path names no file.")
	}
	if cleaned == reservedPath || strings.HasPrefix(cleaned, reservedPath+"/") {
		return "", errReserved(field, "reserved_path", "What lies below "+reservedPath+" is the server's own; choose another path.")
	}
	return cleaned, nil
}

// cleanPrefix gives a path prefix as paths are stored: with its leading slash. Blank stays blank.
func cleanPrefix(text string) string {
	if text = cleanLine(text); text == "" || strings.HasPrefix(text, "/") {
		return text
	}
	return "/" + text
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

// orTrue is a switch that is on where nobody says otherwise. It is a pointer since huma takes a false for a missing value.
func orTrue(value *bool) bool { return value == nil || *value }

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
