package maintenance

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/kb-search/kb/cmd/kb/eval"
)

// Words that no document has. A keyword of them leaves the strict stage without a match, alone the loose one, too.
var (
	foreignEnglish = []string{
		"harvester", "tiramisu", "violin", "glacier", "saxophone", "marathon", "orchid", "parliament", "submarine", "cathedral", "penguin",
		"origami", "velodrome", "caviar", "zeppelin", "lullaby",
	}
	foreignChinese = []string{
		"葡萄酿酒", "钢琴协奏曲", "马拉松选手", "考古发掘", "芭蕾舞剧", "天文望远镜", "海洋捕捞", "书法篆刻", "围棋棋谱", "陶瓷彩绘", "婚礼摄影", "茶叶拍卖",
	}
	nonsenseEnglish = []string{"qwzzkx", "vrblnk", "xxyqj", "zzgrph", "blorptk", "mnbvcq", "plkjhw", "wqxzzr", "kjhgfq", "trwqpl", "dfghjq"}
	nonsenseChinese = []string{"魑魅魍魉", "饕餮鼎彝", "鹣鲽彳亍", "旖旎氤氲", "踽踽独饮", "醍醐耄耋", "蹀躞龃龉", "鳏寡茕茕", "缱绻窈窕"}
	unknownCodes    = []string{"ZQX-9%04d", "QJK_9%04d", "XVW-9%04d", "KZ9%05d"}
)

// kind is a group of queries that are made in the same way. A query that the oracle answers otherwise than by status is
// dropped and made anew.
type kind struct {
	name   string
	count  int
	status string
	make   func() draft
}

// draft is a query with the document that it was made for, if there is one.
type draft struct {
	query eval.Query
	// target must be among the matches; titled says that it must be the first of them.
	target *record
	titled bool
}

// asker makes queries.
type asker struct {
	rng                      *rand.Rand
	records                  []*record
	alarms, hot, experiences []*record
	chinese, english         []*record
	oracle                   *oracle
}

func newAsker(records []*record, seed uint64) *asker {
	a := &asker{rng: rand.New(rand.NewPCG(seed, 2)), records: records, oracle: newOracle(records)}
	for _, r := range records {
		switch {
		case r.knowledgeType == alarm && len(a.hot) < hotCodes:
			a.hot = append(a.hot, r)
		case r.knowledgeType == alarm:
			a.alarms = append(a.alarms, r)
		case r.knowledgeType == experience && len(r.codes) > 0:
			a.experiences = append(a.experiences, r)
		}
		switch r.language {
		case inChinese:
			a.chinese = append(a.chinese, r)
		case inEnglish:
			a.english = append(a.english, r)
		}
	}
	return a
}

// kinds are the 300 queries: 142 strict_hit, 44 too_many, 42 loose_hit, 38 vector_only, 34 no_hit.
func (a *asker) kinds() []kind {
	return []kind{
		{"code", 60, strictHit, a.code},
		{"code-spelling", 8, strictHit, a.codeSpelling},
		{"code-equipment", 14, strictHit, a.codeEquipment},
		{"code-type", 6, strictHit, a.codeType},
		{"phrase-chinese", 12, strictHit, func() draft { return a.phrase(a.chinese) }},
		{"phrase-english", 12, strictHit, func() draft { return a.phrase(a.english) }},
		{"keywords", 6, strictHit, a.keywords},
		{"value", 8, strictHit, a.value},
		{"filter-lists", 8, strictHit, a.filterLists},
		{"scope", 8, strictHit, a.scope},
		{"common-chinese", 11, tooMany, func() draft { return a.common(a.chinese) }},
		{"common-english", 11, tooMany, func() draft { return a.common(a.english) }},
		{"common-code", 6, tooMany, a.commonCode},
		{"common-filtered", 6, tooMany, a.commonFiltered},
		{"common-lists", 4, tooMany, a.commonLists},
		{"scope-wide", 6, tooMany, a.scopeWide},
		{"loose-chinese", 13, looseHit, func() draft { return a.loose(a.chinese) }},
		{"loose-english", 13, looseHit, func() draft { return a.loose(a.english) }},
		{"loose-code", 8, looseHit, a.looseCode},
		{"loose-apart", 8, looseHit, a.looseApart},
		{"vector-chinese", 15, vectorOnly, func() draft { return a.vector(a.chinese, nil) }},
		{"vector-english", 15, vectorOnly, func() draft { return a.vector(a.english, nil) }},
		{"vector-filtered", 8, vectorOnly, a.vectorFiltered},
		{"nonsense-english", 9, noHit, func() draft { return asking(pick(a.rng, nonsenseEnglish)) }},
		{"nonsense-chinese", 7, noHit, func() draft { return asking(pick(a.rng, nonsenseChinese)) }},
		{"unknown-code", 8, noHit, a.unknownCode},
		{"empty-scope", 10, noHit, a.emptyScope},
	}
}

// attempts is how often a query is made anew before its kind counts as impossible.
const attempts = 2000

// ask makes all queries, in mixed order, and their judgements.
func (a *asker) ask() ([]eval.Query, map[string]map[string]int, error) {
	var queries []eval.Query
	var grades []map[string]int
	seen := map[string]bool{}
	for _, k := range a.kinds() {
		for range k.count {
			query, judged, err := a.one(k, seen)
			if err != nil {
				return nil, nil, err
			}
			queries, grades = append(queries, query), append(grades, judged)
		}
	}
	a.rng.Shuffle(len(queries), func(i, j int) {
		queries[i], queries[j] = queries[j], queries[i]
		grades[i], grades[j] = grades[j], grades[i]
	})
	judgements := map[string]map[string]int{}
	for i := range queries {
		queries[i].ID = fmt.Sprintf("q%03d", i+1)
		if len(grades[i]) > 0 {
			judgements[queries[i].ID] = grades[i]
		}
	}
	return queries, judgements, nil
}

// one makes a query of a kind that was not asked yet.
func (a *asker) one(k kind, seen map[string]bool) (eval.Query, map[string]int, error) {
	for range attempts {
		d := k.make()
		d.query.Kind, d.query.Mode = k.name, "auto"
		key, err := json.Marshal(d.query)
		if err != nil {
			return eval.Query{}, nil, err
		}
		if seen[string(key)] {
			continue
		}
		found := a.oracle.ask(d.query)
		if found.status != k.status || !d.fits(found) {
			continue
		}
		grades := d.grades(found)
		if len(grades) == 0 && (k.status == strictHit || k.status == looseHit || k.status == vectorOnly) {
			continue
		}
		seen[string(key)] = true
		d.query.Text = freeText(d.query)
		d.query.Expected = d.expected(found)
		return d.query, grades, nil
	}
	return eval.Query{}, nil, fmt.Errorf("the corpus has no further query of the kind %s: make more documents", k.name)
}

// fits says whether the document that a query was made for is where it should be.
func (d draft) fits(found answer) bool {
	return d.target == nil || found.status == vectorOnly || slices.ContainsFunc(found.matches, func(p page) bool { return p.record == d.target })
}

func (d draft) expected(found answer) *eval.Expected {
	expected := &eval.Expected{Status: found.status}
	if found.status != vectorOnly {
		expected.Total = len(found.matches)
	}
	if d.titled {
		expected.First = d.target.id
	}
	if found.status == tooMany {
		expected.Facets, expected.FacetsTruncated = map[string][]eval.Bucket{}, map[string]int{}
		for _, field := range []string{"project", "equipment", "error_codes"} {
			expected.Facets[field], expected.FacetsTruncated[field] = facet(found.matches, field)
		}
	}
	return expected
}

// grades judges documents: in strict_hit all that match, those with all keywords in the title higher; in loose_hit the few with
// the most keywords; in vector_only those that tell of the same, higher in the language of the question.
func (d draft) grades(found answer) map[string]int {
	grades := map[string]int{}
	units := parseUnits(d.query.Keywords)
	switch found.status {
	case strictHit:
		for _, p := range found.matches {
			grades[p.id] = 1
			title := page{&record{title: p.title}, spaced(p.title)}
			if len(units) > 0 && title.holdsAll(units) {
				grades[p.id] = 2
			}
		}
		if d.titled {
			grades[d.target.id] = 3
		}
	case looseHit:
		most := 0
		for _, p := range found.matches {
			held := 0
			for _, u := range units {
				if p.holds(u) {
					held++
				}
			}
			if held > most {
				most = held
				clear(grades)
			}
			if held == most && held > 0 {
				grades[p.id] = 1
			}
		}
		if len(grades) > strictMaxHits {
			return nil
		}
	case vectorOnly:
		for _, p := range found.matches {
			if p.part == d.target.part && p.symptom == d.target.symptom {
				grades[p.id] = 1
				if p.language == d.target.language {
					grades[p.id] = 2
				}
			}
		}
	}
	return grades
}

// freeText is a structured query for searches that know only text.
func freeText(query eval.Query) string {
	words := slices.Clone(query.Keywords)
	if query.QueryText != "" {
		words = append(words, query.QueryText)
	}
	if len(words) == 0 {
		for _, field := range []string{"project", "equipment", "error_codes", "knowledge_type"} {
			words = append(words, query.Filters[field]...)
		}
	}
	return strings.Join(words, " ")
}

// asking starts a draft with keywords.
func asking(keywords ...string) draft { return draft{query: eval.Query{Keywords: keywords}} }

// within adds a filter.
func (d draft) within(field string, values ...string) draft {
	filters := map[string]eval.Values{field: values}
	for name, others := range d.query.Filters {
		filters[name] = others
	}
	d.query.Filters = filters
	return d
}

// of names the document that a draft was made for.
func (d draft) of(target *record) draft {
	d.target = target
	return d
}

// first says that the document must be the first result, too.
func (d draft) first(target *record) draft {
	d.target, d.titled = target, true
	return d
}

// meaning adds the text for the search by meaning.
func (d draft) meaning(text string) draft {
	d.query.QueryText = text
	return d
}

// say gives a term in the language of a record.
func (r *record) say(t term) string {
	if r.language == inEnglish {
		return t.en
	}
	return t.zh
}

// subject is what a record tells of, as its title has it.
func (r *record) subject() string {
	if r.language == inEnglish {
		return r.part.en + " " + r.symptom.en
	}
	return r.part.zh + r.symptom.zh
}

// question asks about what a record tells of.
func (r *record) question() string {
	if r.language == inEnglish {
		return "What can I do about " + r.symptom.en + " of the " + r.part.en + "?"
	}
	return r.part.zh + r.symptom.zh + "怎么处理？"
}

// foreign is a keyword that no document has, in the language of a record.
func (a *asker) foreign(r *record) string {
	if r.language == inEnglish {
		return pick(a.rng, foreignEnglish)
	}
	return pick(a.rng, foreignChinese)
}

func (a *asker) code() draft {
	r := pick(a.rng, a.alarms)
	return asking(r.main).first(r)
}

func (a *asker) codeSpelling() draft {
	r := pick(a.rng, a.alarms)
	spellings := []string{strings.ToLower(r.main), strings.ToLower(r.main)}
	if strings.ContainsAny(r.main, "-_") {
		spellings = append(spellings, strings.NewReplacer("-", "", "_", "").Replace(r.main), strings.NewReplacer("-", "_", "_", "-").Replace(r.main))
	}
	spelled := pick(a.rng, spellings)
	if spelled == r.main {
		return a.codeSpelling()
	}
	return asking(spelled).first(r)
}

func (a *asker) codeEquipment() draft {
	r := pick(a.rng, a.alarms)
	if a.rng.IntN(2) == 0 {
		r = pick(a.rng, a.hot)
	}
	return asking(r.main).within("equipment", r.equipment).first(r)
}

func (a *asker) codeType() draft {
	r := pick(a.rng, a.experiences)
	return asking(pick(a.rng, r.codes)).within("knowledge_type", experience).of(r)
}

// narrowed adds one or two filters that a record passes.
func (a *asker) narrowed(d draft, r *record) draft {
	switch a.rng.IntN(4) {
	case 0:
		return d.within("equipment", r.equipment)
	case 1:
		return d.within("project", r.project)
	case 2:
		return d.within("knowledge_type", r.knowledgeType)
	default:
		return d.within("project", r.project).within("knowledge_type", r.knowledgeType)
	}
}

func (a *asker) phrase(from []*record) draft {
	r := pick(a.rng, from)
	d := asking(r.subject()).of(r)
	if a.rng.IntN(3) == 0 {
		return d
	}
	return a.narrowed(d, r)
}

func (a *asker) keywords() draft {
	r := pick(a.rng, a.records)
	return a.narrowed(asking(r.say(r.part), r.say(r.symptom)), r).of(r)
}

func (a *asker) value() draft {
	r := pick(a.rng, a.records)
	d := asking(r.say(r.quantity), r.value).of(r)
	if a.rng.IntN(2) == 0 {
		return d
	}
	return d.within("equipment", r.equipment).within("project", r.project)
}

func (a *asker) filterLists() draft {
	r, other := pick(a.rng, a.records), pick(a.rng, a.records)
	switch a.rng.IntN(3) {
	case 0:
		return asking(r.subject()).within("equipment", r.equipment, other.equipment).within("knowledge_type", alarm, experience).of(r)
	case 1:
		return asking(r.subject()).within("project", r.project, other.project).of(r)
	default:
		r, other = pick(a.rng, a.alarms), pick(a.rng, a.alarms)
		return asking().within("error_codes", r.main, other.main).of(r)
	}
}

func (a *asker) scope() draft {
	r := pick(a.rng, a.alarms)
	switch a.rng.IntN(3) {
	case 0:
		return asking().within("error_codes", r.main).of(r)
	case 1:
		return asking().within("error_codes", pick(a.rng, a.hot).main).within("equipment", r.equipment)
	default:
		return asking().within("equipment", r.equipment).within("project", r.project).within("knowledge_type", r.knowledgeType).of(r)
	}
}

func (a *asker) common(from []*record) draft {
	r := pick(a.rng, from)
	return asking(r.say([]term{r.part, r.symptom}[a.rng.IntN(2)]))
}

func (a *asker) commonCode() draft { return asking(pick(a.rng, a.hot).main) }

func (a *asker) commonFiltered() draft {
	r := pick(a.rng, a.records)
	return a.narrowed(asking(r.say(r.symptom)), r)
}

func (a *asker) commonLists() draft {
	r, other := pick(a.rng, a.records), pick(a.rng, a.records)
	return asking(r.say(r.quantity)).within("project", r.project, other.project).within("knowledge_type", setup, alarm)
}

func (a *asker) scopeWide() draft {
	r := pick(a.rng, a.records)
	switch a.rng.IntN(3) {
	case 0:
		return draft{}
	case 1:
		return asking().within("project", r.project).within("knowledge_type", r.knowledgeType)
	default:
		return asking().within("equipment", r.equipment)
	}
}

func (a *asker) loose(from []*record) draft {
	r := pick(a.rng, from)
	return a.narrowed(asking(r.subject(), a.foreign(r)), r).of(r)
}

func (a *asker) looseCode() draft {
	r := pick(a.rng, a.alarms)
	return asking(r.main, a.foreign(r)).of(r)
}

// looseApart asks for two things that no document in scope has together, though others do.
func (a *asker) looseApart() draft {
	r, other := pick(a.rng, a.records), pick(a.rng, a.records)
	return asking(r.say(r.part), r.say(r.symptom)).within("equipment", other.equipment).within("project", other.project)
}

func (a *asker) vector(from []*record, narrow func(draft, *record) draft) draft {
	r := pick(a.rng, from)
	d := asking(a.foreign(r)).meaning(r.question()).of(r)
	if narrow != nil {
		return narrow(d, r)
	}
	return d
}

func (a *asker) vectorFiltered() draft { return a.vector(a.records, a.narrowed) }

func (a *asker) unknownCode() draft {
	d := asking(fmt.Sprintf(pick(a.rng, unknownCodes), a.rng.IntN(10_000)))
	if a.rng.IntN(2) == 0 {
		return a.narrowed(d, pick(a.rng, a.records))
	}
	return d
}

// emptyScope leaves no document, with or without a text that would be searched by meaning.
func (a *asker) emptyScope() draft {
	r, other := pick(a.rng, a.alarms), pick(a.rng, a.records)
	d := asking(r.subject())
	if a.rng.IntN(2) == 0 {
		d = d.meaning(r.question())
	}
	switch a.rng.IntN(5) {
	case 0:
		return d.within("project", "Plant Nowhere")
	case 1:
		return d.within("knowledge_type", "manual")
	case 2:
		return d.within("error_codes", r.main).within("equipment", other.equipment)
	case 3:
		return asking().within("error_codes", "ZQX-99999").within("project", r.project)
	default:
		return d.within("equipment", r.equipment).within("error_codes", r.main).within("knowledge_type", setup)
	}
}
