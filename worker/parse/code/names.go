package code

import (
	"regexp"
	"strings"

	sitter "github.com/smacker/go-tree-sitter"
)

func fields(s string) []string { return strings.Fields(s) }

// names returns the names that a definition adds to the path, outermost first; none when it isn't one after all.
func (w *walker) names(node *sitter.Node) []string {
	switch node.Type() {
	case "method_declaration":
		if receiver := node.ChildByFieldName("receiver"); receiver != nil { // Go.
			return one(receiverType(w.content(receiver)), w.field(node, "name"))
		}
	case "package_clause", "package_declaration":
		if child := lastNamed(node, "comment"); child != nil {
			return one(w.content(child))
		}
	case "impl_item":
		return one(typeName(w.field(node, "type")))
	case "type_definition":
		if inner := node.ChildByFieldName("type"); inner == nil || !has(inner, "body") {
			return nil
		}

		return qualified(w.declarator(node))
	case "enum_specifier":
		if !has(node, "body") {
			return nil
		}
	case "function_definition":
		if has(node, "declarator") { // C and C++.
			return qualified(w.declarator(node))
		}
	case "preproc_function_def":
		if first, last := rows(node); first == last {
			return nil
		}
	case "property_declaration":
		if first, last := rows(node); first == last || !has(node, "name") {
			return nil
		}
	case "operator_declaration":
		return one("operator " + w.field(node, "operator"))
	case "indexer_declaration":
		return one("this")
	case "destructor_declaration":
		return one("~" + w.field(node, "name"))
	case "field_definition", "public_field_definition":
		if callable(node.ChildByFieldName("value")) {
			return one(w.field(node, "property") + w.field(node, "name"))
		}

		return nil
	case "lexical_declaration", "variable_declaration", "expression_statement":
		return w.assigned(node)
	}
	if strings.HasPrefix(node.Type(), "create_") {
		return w.relation(node)
	}

	return one(strings.Trim(w.field(node, "name"), "'\"`"))
}

// hasBody reports whether a class is one, and no mention of it.
func (w *walker) hasBody(node *sitter.Node) bool {
	switch node.Type() {
	case "class_specifier", "struct_specifier", "union_specifier":
		return has(node, "body")
	default:
		return true
	}
}

func (w *walker) field(node *sitter.Node, field string) string {
	return w.content(node.ChildByFieldName(field))
}

// declarator returns the name that a C declaration declares.
func (w *walker) declarator(node *sitter.Node) string {
	const most = 16
	for range most {
		inner := node.ChildByFieldName("declarator")
		if inner == nil && strings.HasSuffix(node.Type(), "reference_declarator") {
			inner = node.NamedChild(0)
		}
		if inner == nil {
			break
		}
		node = inner
	}

	return w.content(node)
}

// assigned returns the name of a variable that holds a function or class in JavaScript.
func (w *walker) assigned(node *sitter.Node) []string {
	child := node.NamedChild(0)
	if child == nil {
		return nil
	}
	switch child.Type() {
	case "variable_declarator":
		if callable(child.ChildByFieldName("value")) {
			return one(w.field(child, "name"))
		}
	case "assignment_expression":
		if callable(child.ChildByFieldName("right")) {
			var names []string
			for _, part := range strings.Split(w.field(child, "left"), ".") {
				if part != "prototype" && part != "module" && part != "exports" && part != "this" && part != "window" {
					names = append(names, part)
				}
			}

			return names
		}
	}

	return nil
}

func callable(node *sitter.Node) bool {
	if node == nil {
		return false
	}
	switch node.Type() {
	case "arrow_function", "function", "function_expression", "generator_function", "class":
		return true
	default:
		return false
	}
}

// relation returns the name of what an SQL statement creates.
func (w *walker) relation(node *sitter.Node) []string {
	for i := range min(int(node.ChildCount()), 16) {
		child := node.Child(i)
		switch child.Type() {
		case "object_reference":
			return one(strings.ReplaceAll(w.content(child), `"`, ""))
		case "identifier":
			return one(strings.Trim(w.content(child), "\"`"))
		}
	}

	return nil
}

func lastNamed(node *sitter.Node, except string) *sitter.Node {
	for i := int(node.NamedChildCount()) - 1; i >= 0; i-- {
		if child := node.NamedChild(i); !strings.Contains(child.Type(), except) {
			return child
		}
	}

	return nil
}

// one returns the names that aren't empty.
func one(names ...string) []string {
	var list []string
	for _, n := range names {
		if n != "" {
			list = append(list, n)
		}
	}

	return list
}

// receiverType returns the type of a Go receiver such as "(q *Queue[T])".
func receiverType(s string) string {
	s, _, _ = strings.Cut(strings.Trim(s, "()"), "[")
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '*' || r == '\t' || r == '\n' || r == ',' })
	if len(parts) == 0 {
		return ""
	}

	return parts[len(parts)-1]
}

// typeName returns a type's name without its arguments.
func typeName(s string) string {
	s, _, _ = strings.Cut(s, "<")

	return strings.TrimLeft(s, "&*")
}

var arguments = regexp.MustCompile(`<[^<>]*>`)

// qualified returns the parts of a C++ name such as "Queue<T>::push".
func qualified(s string) []string {
	if strings.Contains(s, "operator") {
		return one(strings.Split(s, "::")...)
	}

	return one(strings.Split(arguments.ReplaceAllString(s, ""), "::")...)
}
