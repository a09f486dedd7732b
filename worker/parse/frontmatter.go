package parse

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// maxFrontMatter is how long front matter may be; a longer block is text.
	maxFrontMatter = 64 << 10
	// maxMetadata is how many values front matter may hold, aliases resolved.
	maxMetadata = 10_000
)

// frontMatter reads the YAML block between lines of --- that text may begin with. It returns the block's length with
// both fences, 0 when there is none, and its values, nil when they are not valid YAML.
func frontMatter(text string) (int, map[string]any) {
	if !strings.HasPrefix(text, "---") || strings.TrimRight(text[:lineEnd(text, 0)], " \t\n") != "---" {
		return 0, nil
	}
	start := lineEnd(text, 0)
	for at := start; at < len(text) && at < maxFrontMatter; {
		end := lineEnd(text, at)
		if line := strings.TrimRight(text[at:end], " \t\n"); line == "---" || line == "..." {
			return matter(text[start:at], end)
		}
		at = end
	}

	return 0, nil
}

// matter decides whether body, whose closing fence ends at offset end, is front matter.
func matter(body string, end int) (int, map[string]any) {
	if strings.TrimSpace(body) == "" {
		return end, map[string]any{}
	}
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(body), &node); err == nil && len(node.Content) == 1 {
		budget := maxMetadata
		if values, ok := plain(node.Content[0], &budget, 0).(map[string]any); ok && budget > 0 {
			return end, values
		}

		return 0, nil
	}
	if keyed(body) {
		return end, nil
	}

	return 0, nil
}

// keyed reports whether body looks like front matter that is not quite YAML, such as "title: Notes: part one": each
// line is a key with a value, or continues one.
func keyed(body string) bool {
	first := true
	for line := range strings.Lines(body) {
		line = strings.TrimRight(line, " \t\n")
		if line == "" || line[0] == '#' || !first && strings.ContainsRune(" \t-", rune(line[0])) {
			continue
		}
		key, _, found := strings.Cut(line, ":")
		if !found || key == "" || strings.ContainsAny(key, " \t") {
			return false
		}
		first = false
	}

	return !first
}

// lenientTitle finds the title in front matter that is not valid YAML.
func lenientTitle(block string) string {
	for line := range strings.Lines(block) {
		if value, found := strings.CutPrefix(line, "title:"); found {
			return strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}

	return ""
}

// plain turns a YAML node into what JSON and the database can hold: keys are strings, dates stay as written, no string
// holds a control character. budget limits the number of values, which aliases can multiply.
func plain(node *yaml.Node, budget *int, depth int) any {
	*budget--
	if *budget <= 0 || depth > 64 {
		*budget = 0

		return nil
	}
	switch node.Kind {
	case yaml.AliasNode:
		return plain(node.Alias, budget, depth+1)
	case yaml.SequenceNode:
		list := make([]any, 0, len(node.Content))
		for _, item := range node.Content {
			list = append(list, plain(item, budget, depth+1))
		}

		return list
	case yaml.MappingNode:
		values := make(map[string]any, len(node.Content)/2)
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, _ := clean(node.Content[i].Value)
			values[key] = plain(node.Content[i+1], budget, depth+1)
		}

		return values
	default:
		return scalar(node)
	}
}

func scalar(node *yaml.Node) any {
	switch node.Tag {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(node.Value, "true")
	case "!!int":
		if n, err := strconv.ParseInt(node.Value, 10, 64); err == nil {
			return n
		}
	case "!!float":
		// Neither infinite nor NaN, nor a whole number so long that it lost digits.
		if f, err := strconv.ParseFloat(node.Value, 64); err == nil && f-f == 0 && strings.ContainsAny(node.Value, ".eE") {
			return f
		}
	}
	value, _ := clean(strings.ToValidUTF8(node.Value, "\uFFFD"))

	return value
}
