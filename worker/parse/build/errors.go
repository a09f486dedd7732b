package build

import (
	"errors"

	"github.com/kb-search/kb/worker/parse"
)

// Corrupt returns the error of a damaged file.
func Corrupt(message string) *parse.Error { return &parse.Error{Code: "corrupt", Message: message} }

// TooLarge returns the error of a file that would take too much memory or time.
func TooLarge(message string) *parse.Error { return &parse.Error{Code: "too_large", Message: message} }

// Blame turns an error met while reading a file into one for the person who sent it: an *parse.Error stays what it is,
// any other means damage.
func Blame(err error, corrupt string) error {
	var own *parse.Error
	if errors.As(err, &own) {
		return own
	}

	return Corrupt(corrupt)
}
