package auth

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

func mustPolicy(t testing.TB, text string) Policy {
	t.Helper()
	policy, err := ParsePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

func TestParsePolicy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ document, says string }{
		"Whole": {`{"statement": [{"effect": "Allow", "action": ["documents:*", "knowledge:SearchKnowledge"],
			"resource": ["srn:proj_1:document:/manuals/*", "soat:*:document:*", "*"], "condition": {"StringLike": {"soat:ResourceTag/team": ["night*"]}}}]}`, ""},
		"BareStrings":           {`{"statement": [{"effect": "Deny", "action": "*", "resource": "*", "condition": {"StringEquals": {"soat:ResourceType": "document"}}}]}`, ""},
		"NoStatement":           {`{"statement": []}`, "1 to 100 statements"},
		"NoObject":              {`[]`, "no document"},
		"TwoDocuments":          {`{"statement": [{"effect": "Allow", "action": "*"}]} {}`, "behind its end"},
		"UnknownField":          {`{"statement": [{"effect": "Allow", "actions": ["*"]}]}`, "actions"},
		"UnknownEffect":         {`{"statement": [{"effect": "allow", "action": ["*"]}]}`, "statement 1: effect"},
		"NoAction":              {`{"statement": [{"effect": "Allow"}]}`, "action is missing"},
		"UnknownAction":         {`{"statement": [{"effect": "Allow", "action": ["*"]}, {"effect": "Allow", "action": ["documents:Read"]}]}`, "statement 2: action \"documents:Read\" is not known"},
		"UnknownModule":         {`{"statement": [{"effect": "Allow", "action": ["docs:*"]}]}`, "is not known"},
		"WildcardInAnAction":    {`{"statement": [{"effect": "Allow", "action": ["documents:Get*"]}]}`, "is not known"},
		"EmptyResources":        {`{"statement": [{"effect": "Allow", "action": ["*"], "resource": []}]}`, "leave it out"},
		"ResourceOfThreeParts":  {`{"statement": [{"effect": "Allow", "action": ["*"], "resource": ["srn:a:b"]}]}`, "is not"},
		"ResourceOfAnEmptyPart": {`{"statement": [{"effect": "Allow", "action": ["*"], "resource": ["srn::document:*"]}]}`, "empty part"},
		"UnknownOperator":       {`{"statement": [{"effect": "Allow", "action": ["*"], "condition": {"NumericEquals": {"soat:ResourceType": "x"}}}]}`, "operator"},
		"UnknownKey":            {`{"statement": [{"effect": "Allow", "action": ["*"], "condition": {"StringEquals": {"aws:user": "x"}}}]}`, "key"},
		"ValueThatIsNoText":     {`{"statement": [{"effect": "Allow", "action": ["*"], "condition": {"StringEquals": {"soat:ResourceType": 1}}}]}`, "string"},
		"TooLong":               {`{"statement": [{"effect": "Allow", "action": ["*"], "resource": ["srn:*:document:` + strings.Repeat("a", 1001) + `"]}]}`, "1000 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParsePolicy([]byte(test.document))
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAllows(t *testing.T) {
	t.Parallel()
	document := Resource{Project: "proj_1", Kind: "document", Names: []string{"doc_1", "/manuals/pump.md"}, Tags: map[string]string{"team": "night", "draft": ""}}
	for name, test := range map[string]struct {
		statements string
		want       bool
	}{
		"NothingIsDenied":           {`{"effect": "Allow", "action": "projects:*"}`, false},
		"All":                       {`{"effect": "Allow", "action": "*"}`, true},
		"Module":                    {`{"effect": "Allow", "action": "documents:*"}`, true},
		"Operation":                 {`{"effect": "Allow", "action": "documents:GetDocument"}`, true},
		"AnotherOperation":          {`{"effect": "Allow", "action": "documents:DeleteDocument"}`, false},
		"DenyWins":                  {`{"effect": "Deny", "action": "documents:GetDocument"}, {"effect": "Allow", "action": "*"}`, false},
		"ByPath":                    {`{"effect": "Allow", "action": "*", "resource": "srn:proj_1:document:/manuals/*"}`, true},
		"ByAnotherPath":             {`{"effect": "Allow", "action": "*", "resource": "srn:proj_1:document:/manual?.md"}`, false},
		"ByID":                      {`{"effect": "Allow", "action": "*", "resource": "srn:*:document:doc_1"}`, true},
		"AnotherProject":            {`{"effect": "Allow", "action": "*", "resource": "srn:proj_2:*:*"}`, false},
		"AnotherKind":               {`{"effect": "Allow", "action": "*", "resource": "srn:proj_1:memory:*"}`, false},
		"DenyByPath":                {`{"effect": "Allow", "action": "*"}, {"effect": "Deny", "action": "*", "resource": "srn:*:*:/manuals/p*"}`, false},
		"TagEquals":                 {`{"effect": "Allow", "action": "*", "condition": {"StringEquals": {"soat:ResourceTag/team": ["day", "night"]}}}`, true},
		"TagDiffers":                {`{"effect": "Allow", "action": "*", "condition": {"StringEquals": {"soat:ResourceTag/team": "day"}}}`, false},
		"TagNotEquals":              {`{"effect": "Allow", "action": "*", "condition": {"StringNotEquals": {"soat:ResourceTag/team": "day"}}}`, true},
		"MissingTagIsNotEqual":      {`{"effect": "Allow", "action": "*", "condition": {"StringNotEquals": {"soat:ResourceTag/site": "a"}}}`, true},
		"MissingTagIsNotLike":       {`{"effect": "Allow", "action": "*", "condition": {"StringLike": {"soat:ResourceTag/site": "*"}}}`, false},
		"TagLike":                   {`{"effect": "Allow", "action": "*", "condition": {"StringLike": {"soat:ResourceTag/team": "n?gh*"}}}`, true},
		"AllConditionsMustHold":     {`{"effect": "Allow", "action": "*", "condition": {"StringLike": {"soat:ResourceTag/team": "n*"}, "StringEquals": {"soat:ResourceTag/draft": "no"}}}`, false},
		"Type":                      {`{"effect": "Allow", "action": "*", "condition": {"StringEquals": {"soat:ResourceType": "document"}}}`, true},
		"AnotherType":               {`{"effect": "Allow", "action": "*", "condition": {"StringEquals": {"soat:ResourceType": "memory"}}}`, false},
		"WildcardsOfLIKEAreLetters": {`{"effect": "Allow", "action": "*", "resource": "srn:*:document:/manuals/pump_md"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &Principal{Policies: []Policy{mustPolicy(t, `{"statement": [`+test.statements+`]}`)}}
			if got := p.Allows("documents:GetDocument", document); got != test.want {
				t.Errorf("got %v", got)
			}
			if !(&Principal{Admin: true}).Allows("documents:GetDocument", document) {
				t.Error("an admin is refused")
			}
		})
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse("00000000-0000-7000-8000-000000000001")
	parse := func(name string) (uuid.UUID, bool) { return id, name == "doc_1" }
	for name, test := range map[string]struct {
		statements, want string
		none             bool
	}{
		"Unrestricted":            {`{"effect": "Allow", "action": "*"}`, "", false},
		"Nothing":                 {`{"effect": "Allow", "action": "projects:*"}`, `{"allow":null,"deny":null}`, true},
		"AllIsDenied":             {`{"effect": "Allow", "action": "*"}, {"effect": "Deny", "action": "knowledge:*"}`, `{"allow":[{"all":true,"ids":[],"paths":[],"tags":[]}],"deny":[{"all":true,"ids":[],"paths":[],"tags":[]}]}`, true},
		"OtherKindsDoNotCount":    {`{"effect": "Allow", "action": "*"}, {"effect": "Deny", "action": "*", "resource": "srn:*:memory:*"}`, "", false},
		"OtherProjectsDoNotCount": {`{"effect": "Allow", "action": "*"}, {"effect": "Deny", "action": "*", "resource": "srn:proj_2:*:*"}`, "", false},
		"PathsAndIDs":             {`{"effect": "Allow", "action": "*", "resource": ["srn:*:document:/a_%\\*/x?", "srn:*:document:doc_1"]}`, `{"allow":[{"all":false,"ids":["00000000-0000-7000-8000-000000000001"],"paths":["/a\\_\\%\\\\%/x_"],"tags":[]}],"deny":null}`, false},
		"Tags":                    {`{"effect": "Allow", "action": "*", "condition": {"StringLike": {"soat:ResourceTag/t": "a*"}, "StringNotEquals": {"soat:ResourceTag/u": "b"}}}`, `{"allow":[{"all":true,"ids":[],"paths":[],"tags":[{"operator":"StringLike","key":"t","values":["a%"]},{"operator":"StringNotEquals","key":"u","values":["b"]}]}],"deny":null}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &Principal{Policies: []Policy{mustPolicy(t, `{"statement": [`+test.statements+`]}`)}}
			filter, none := p.Filter("knowledge:SearchKnowledge", "proj_1", "document", parse)
			got := ""
			if filter != nil {
				encoded, err := filter.JSON()
				if err != nil {
					t.Fatal(err)
				}
				got = string(encoded)
			}
			if got != test.want || none != test.none {
				t.Errorf("got %s, %v", got, none)
			}
		})
	}
}

// A matcher that tries every way would not end.
func TestMatchEnds(t *testing.T) {
	t.Parallel()
	if match(strings.Repeat("*a", 400)+"b", strings.Repeat("a", 1000)) {
		t.Error("it matches")
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add([]byte(`{"statement": [{"effect": "Allow", "action": ["documents:*"], "resource": ["srn:*:document:/a*"], "condition": {"StringLike": {"soat:ResourceTag/t": ["*"]}}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		policy, err := ParsePolicy(data)
		if err != nil {
			return
		}
		p := &Principal{Policies: []Policy{policy}}
		p.Filter("documents:GetDocument", "proj_1", "document", func(string) (uuid.UUID, bool) { return uuid.UUID{}, false })
		p.Allows("documents:GetDocument", Resource{Project: "proj_1", Kind: "document", Names: []string{"doc_1"}})
	})
}

func TestKey(t *testing.T) {
	t.Parallel()
	key, other := NewKey(), NewKey()
	prefix, hash, ok := ReadKey(key.Text)
	if !ok || prefix != key.Prefix || string(hash) != string(key.Hash) || key.Text == other.Text || key.Prefix == other.Prefix || len(key.Prefix) != 11 {
		t.Errorf("%+v read as %s", key, prefix)
	}
	for _, text := range []string{"", "sk_", "sk_short", key.Text + "x", strings.TrimPrefix(key.Text, "sk_") + "sk_"} {
		if _, _, ok := ReadKey(text); ok {
			t.Errorf("%q is read as a key", text)
		}
	}
}
