package chunk

import "strings"

// maxPrefixBytes limits a title or heading before its tokens are counted.
const maxPrefixBytes = 1 << 10

// shorten fits a title and the headings of a section into a quarter of the window. The innermost heading says most, so
// outer ones go first; then the title and the heading are cut at word borders.
func (s *splitter) shorten(title string, path []string) (string, string) {
	limit := s.Size / 4
	title = oneLine(title)
	section := oneLine(strings.Join(path, " > "))
	if len(title) <= maxPrefixBytes && len(section) <= maxPrefixBytes && s.Count(title)+s.Count(section) <= limit {
		return title, section
	}

	least := min(limit/2, s.Count(section[:runeBorder(section, maxPrefixBytes)]))
	title = s.clip(title, limit-least)
	limit -= s.Count(title)
	for len(path) > 1 {
		section = oneLine(strings.Join(path, " > "))
		if len(section) <= maxPrefixBytes && s.Count(section) <= limit {
			return title, section
		}
		path = path[1:]
	}

	return title, s.clip(oneLine(strings.Join(path, "")), limit)
}

// clip cuts text at a word border so that it takes no more than limit tokens; a first word that is too long is cut at a
// character border.
func (s *splitter) clip(text string, limit int) string {
	whole := text
	text = text[:runeBorder(text, maxPrefixBytes)]
	if len(text) == len(whole) && s.Count(text) <= limit {
		return text
	}
	tokens, end := 0, 0
	for at := 0; at < len(text); {
		length, next, _ := cutWord(text[at:])
		if at+length == len(text) && len(text) < len(whole) && end > 0 {
			break // The word goes on behind the limit.
		}
		if tokens += s.Count(text[at : at+length]); tokens > limit {
			break
		}
		end = at + length
		at += next
	}
	for end == 0 && len(text) > 1 {
		text = strings.TrimSpace(text[:runeBorder(text, len(text)/2)])
		if s.Count(text) <= limit {
			end = len(text)
		} else if len(text) == runeBorder(text, 1) {
			break
		}
	}

	return text[:end]
}

// oneLine makes each run of white space a single space.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
