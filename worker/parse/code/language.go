package code

import (
	"maps"
	"sync"

	sitter "github.com/smacker/go-tree-sitter"
	"github.com/smacker/go-tree-sitter/bash"
	"github.com/smacker/go-tree-sitter/c"
	"github.com/smacker/go-tree-sitter/cpp"
	"github.com/smacker/go-tree-sitter/csharp"
	"github.com/smacker/go-tree-sitter/golang"
	"github.com/smacker/go-tree-sitter/java"
	"github.com/smacker/go-tree-sitter/javascript"
	"github.com/smacker/go-tree-sitter/php"
	"github.com/smacker/go-tree-sitter/python"
	"github.com/smacker/go-tree-sitter/ruby"
	"github.com/smacker/go-tree-sitter/rust"
	"github.com/smacker/go-tree-sitter/sql"
	"github.com/smacker/go-tree-sitter/typescript/tsx"
	"github.com/smacker/go-tree-sitter/typescript/typescript"
)

// Language is a programming language.
type Language struct {
	// Name is the language's name for people, such as "C++".
	Name string
	// grammar finds definitions; nil means that the text is cut at blank lines.
	grammar *grammar
}

// Structured reports whether blocks follow the language's definitions; else they end at blank lines.
func (l Language) Structured() bool { return l.grammar != nil }

// Languages returns the languages by extension, lower case with the dot. The map is the caller's.
func Languages() map[string]Language { return maps.Clone(languages) }

// languages is the one table from an extension to the way a file is cut.
var languages = byExtension(map[Language][]string{
	{"Go", goGrammar}:                 {".go"},
	{"Python", pythonGrammar}:         {".py", ".pyi", ".pyw"},
	{"JavaScript", scriptGrammar}:     {".js", ".jsx", ".mjs", ".cjs"},
	{"TypeScript", typescriptGrammar}: {".ts", ".mts", ".cts"},
	{"TSX", tsxGrammar}:               {".tsx"},
	{"Java", javaGrammar}:             {".java"},
	{"Rust", rustGrammar}:             {".rs"},
	{"C", cGrammar}:                   {".c"},
	{"C++", cppGrammar}:               {".h", ".hh", ".hpp", ".hxx", ".cc", ".cpp", ".cxx", ".c++", ".ipp", ".tpp", ".cu", ".cuh"},
	{"C#", csharpGrammar}:             {".cs", ".csx"},
	{"Ruby", rubyGrammar}:             {".rb", ".rake", ".gemspec"},
	{"PHP", phpGrammar}:               {".php"},
	{"Shell", bashGrammar}:            {".sh", ".bash", ".zsh", ".ksh"},
	{"SQL", sqlGrammar}:               {".sql"},

	{"Kotlin", nil}:      {".kt", ".kts"},
	{"Swift", nil}:       {".swift"},
	{"Scala", nil}:       {".scala", ".sc"},
	{"Lua", nil}:         {".lua"},
	{"R", nil}:           {".r"},
	{"Perl", nil}:        {".pl", ".pm"},
	{"Dart", nil}:        {".dart"},
	{"Elixir", nil}:      {".ex", ".exs"},
	{"Erlang", nil}:      {".erl", ".hrl"},
	{"Haskell", nil}:     {".hs"},
	{"OCaml", nil}:       {".ml", ".mli"},
	{"F#", nil}:          {".fs", ".fsi", ".fsx"},
	{"Clojure", nil}:     {".clj", ".cljs", ".cljc"},
	{"Groovy", nil}:      {".groovy", ".gradle"},
	{"Julia", nil}:       {".jl"},
	{"Zig", nil}:         {".zig"},
	{"Nim", nil}:         {".nim"},
	{"Objective-C", nil}: {".m", ".mm"},
	{"Pascal", nil}:      {".pas"},
	{"Fortran", nil}:     {".f90", ".f95"},
	{"Visual Basic", nil}: {
		".vb", ".bas",
	},
	{"PowerShell", nil}: {".ps1", ".psm1"},
	{"Batch", nil}:      {".bat", ".cmd"},
	{"Fish", nil}:       {".fish"},
	{"Assembly", nil}:   {".asm", ".s"},
	{"Solidity", nil}:   {".sol"},
	{"HCL", nil}:        {".tf", ".hcl"},
	{"Protobuf", nil}:   {".proto"},
	{"GraphQL", nil}:    {".graphql", ".gql"},
	{"CMake", nil}:      {".cmake"},
	{"CSS", nil}:        {".css", ".scss", ".sass", ".less"},
	{"Vue", nil}:        {".vue"},
	{"Svelte", nil}:     {".svelte"},
})

func byExtension(list map[Language][]string) map[string]Language {
	table := map[string]Language{}
	for lang, extensions := range list {
		for _, ext := range extensions {
			table[ext] = lang
		}
	}

	return table
}

// role says what a kind of node is to us.
type role uint8

const (
	other    role = iota // Statements, imports and the like: what is between definitions.
	comment              // Goes with what follows: comments, decorators and attributes.
	pack                 // Names the package of what follows.
	open                 // Is looked into.
	wrap                 // Is looked into; what is found there begins where this begins.
	space                // A namespace: names what is in it and is always looked into.
	class                // A type with members.
	function             // A definition that isn't looked into.
)

// grammar is what we know about a language's syntax tree.
type grammar struct {
	language func() *sitter.Language
	// symbols has the role of each of the language's symbols.
	symbols func() []role
	// header matches the line that a definition begins with, where the tree doesn't say so.
	header header
}

func newGrammar(language func() *sitter.Language, h header, roles map[role]string) *grammar {
	return &grammar{language: language, header: h, symbols: sync.OnceValue(func() []role {
		byName := map[string]role{}
		for r, names := range roles {
			for _, n := range fields(names) {
				byName[n] = r
			}
		}
		lang := language()
		symbols := make([]role, lang.SymbolCount())
		for i := range symbols {
			if symbol := sitter.Symbol(i); lang.SymbolType(symbol) == sitter.SymbolTypeRegular {
				symbols[i] = byName[lang.SymbolName(symbol)]
			}
		}

		return symbols
	})}
}

var (
	goGrammar = newGrammar(golang.GetLanguage, goHeader, map[role]string{
		comment: "comment", pack: "package_clause", wrap: "type_declaration",
		function: "function_declaration method_declaration type_spec type_alias",
	})
	pythonGrammar = newGrammar(python.GetLanguage, pythonHeader, map[role]string{
		comment: "comment decorator", wrap: "decorated_definition",
		open: "block if_statement elif_clause else_clause try_statement except_clause except_group_clause finally_clause " +
			"with_statement",
		class: "class_definition", function: "function_definition",
	})
	scriptRoles = map[role]string{
		comment: "comment html_comment decorator hash_bang_line", wrap: "export_statement ambient_declaration",
		open: "class_body statement_block", space: "internal_module module",
		class: "class_declaration abstract_class_declaration",
		function: "function_declaration generator_function_declaration function_signature method_definition field_definition " +
			"public_field_definition lexical_declaration variable_declaration expression_statement interface_declaration " +
			"type_alias_declaration enum_declaration",
	}
	scriptGrammar     = newGrammar(javascript.GetLanguage, scriptHeader, scriptRoles)
	typescriptGrammar = newGrammar(typescript.GetLanguage, scriptHeader, scriptRoles)
	tsxGrammar        = newGrammar(tsx.GetLanguage, scriptHeader, scriptRoles)
	javaGrammar       = newGrammar(java.GetLanguage, javaHeader, map[role]string{
		comment: "line_comment block_comment", pack: "package_declaration",
		open: "class_body interface_body enum_body enum_body_declarations annotation_type_body",
		class: "class_declaration interface_declaration enum_declaration record_declaration " +
			"annotation_type_declaration",
		function: "method_declaration constructor_declaration compact_constructor_declaration",
	})
	rustGrammar = newGrammar(rust.GetLanguage, rustHeader, map[role]string{
		comment: "line_comment block_comment attribute_item", open: "declaration_list foreign_mod_item", space: "mod_item",
		class: "impl_item trait_item", function: "function_item struct_item enum_item union_item macro_definition",
	})
	cRoles = map[role]string{
		comment: "comment", wrap: "template_declaration",
		open: "preproc_if preproc_ifdef preproc_else preproc_elif preproc_elifdef linkage_specification declaration_list " +
			"field_declaration_list",
		space: "namespace_definition", class: "class_specifier struct_specifier union_specifier",
		function: "function_definition enum_specifier type_definition preproc_function_def concept_definition",
	}
	cGrammar      = newGrammar(c.GetLanguage, cHeader, cRoles)
	cppGrammar    = newGrammar(cpp.GetLanguage, cHeader, cRoles)
	csharpGrammar = newGrammar(csharp.GetLanguage, csharpHeader, map[role]string{
		comment: "comment", pack: "file_scoped_namespace_declaration", wrap: "global_statement",
		open: "declaration_list preproc_if preproc_else preproc_elif", space: "namespace_declaration",
		class: "class_declaration struct_declaration interface_declaration record_declaration record_struct_declaration",
		function: "method_declaration constructor_declaration destructor_declaration operator_declaration " +
			"property_declaration indexer_declaration enum_declaration delegate_declaration local_function_statement",
	})
	rubyGrammar = newGrammar(ruby.GetLanguage, rubyHeader, map[role]string{
		comment: "comment", open: "body_statement singleton_class", space: "module", class: "class",
		function: "method singleton_method",
	})
	phpGrammar = newGrammar(php.GetLanguage, phpHeader, map[role]string{
		comment: "comment attribute_list", pack: "namespace_definition",
		open:     "compound_statement declaration_list enum_declaration_list",
		class:    "class_declaration interface_declaration trait_declaration enum_declaration",
		function: "function_definition method_declaration",
	})
	bashGrammar = newGrammar(bash.GetLanguage, bashHeader, map[role]string{
		comment: "comment", function: "function_definition",
	})
	sqlGrammar = newGrammar(sql.GetLanguage, sqlHeader, map[role]string{
		comment: "comment marginalia", wrap: "statement",
		function: "create_table create_view create_materialized_view create_function create_type create_trigger " +
			"create_schema create_sequence create_index create_database create_role create_extension",
	})
)
