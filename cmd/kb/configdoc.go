package main

import (
	_ "embed"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"reflect"
	"strconv"
	"strings"
)

//go:embed config.go
var configSource string

const configDocIntro = `<!-- Generated from cmd/kb/config.go by make generate: edit the comments there. -->

# Configuration

kb is configured by its environment alone. What can't be used stops it at the start, with a sentence for each variable
that says what to change. An empty variable counts as none. What is marked as secret never shows in a log, and may come
from a file: append ` + "`_FILE`" + ` to the variable's name and give the file's path.

| variable | default | meaning |
| --- | --- | --- |
`

// writeConfigDoc writes docs/config.md: a row for each field of Config, in the order of the source.
func writeConfigDoc(out io.Writer) error {
	variables, err := configVariables(configSource)
	if err != nil {
		return err
	}
	var table strings.Builder
	table.WriteString(configDocIntro)
	for _, v := range variables {
		meaning := v.meaning
		if v.secret {
			meaning += " (secret)"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", v.name, cell(v.preset), cell(meaning))
	}
	_, err = io.WriteString(out, table.String())
	return err
}

// configVariable is what a field of Config says about one variable.
type configVariable struct {
	name, preset, meaning string
	// envDefault is the value that is used, preset the words for it.
	envDefault string
	secret     bool
}

// configVariables reads the fields of Config and reports every field whose comment can't be used.
func configVariables(source string) ([]configVariable, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "config.go", source, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("read the source of Config: %w", err)
	}
	fields := configFields(file)
	if len(fields) == 0 {
		return nil, errors.New("read the source of Config: it has no fields")
	}
	var variables []configVariable
	var problems []error
	for _, field := range fields {
		v, err := newConfigVariable(field)
		variables, problems = append(variables, v), append(problems, err)
	}
	return variables, errors.Join(problems...)
}

func configFields(file *ast.File) []*ast.Field {
	var fields []*ast.Field
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "Config" {
			return true
		}
		if config, ok := spec.Type.(*ast.StructType); ok {
			fields = config.Fields.List
		}
		return false
	})
	return fields
}

func newConfigVariable(field *ast.Field) (configVariable, error) {
	if len(field.Names) != 1 || field.Tag == nil {
		return configVariable{}, errors.New("a field of Config needs one name and an env tag")
	}
	name := field.Names[0].Name
	literal, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return configVariable{}, fmt.Errorf("read the tag of Config.%s: %w", name, err)
	}
	tag := reflect.StructTag(literal)
	variable, _, _ := strings.Cut(tag.Get("env"), ",")
	if variable == "" {
		return configVariable{}, fmt.Errorf("the field Config.%s has no env tag", name)
	}
	comment := strings.Join(strings.Fields(field.Doc.Text()), " ")
	meaning, preset, found := strings.Cut(comment, " Defaults to ")
	rest, named := strings.CutPrefix(meaning, name+" ")
	preset, ended := strings.CutSuffix(preset, ".")
	if !found || !named || !ended {
		return configVariable{}, fmt.Errorf("the comment of Config.%[1]s must begin with %[1]q and end in \"Defaults to ….\"", name)
	}
	kind, _ := field.Type.(*ast.Ident)
	return configVariable{
		name: variable, preset: preset, meaning: strings.TrimSuffix(strings.TrimPrefix(rest, "is "), "."),
		envDefault: tag.Get("envDefault"), secret: kind != nil && kind.Name == "Secret",
	}, nil
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
