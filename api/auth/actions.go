package auth

import (
	"slices"
	"strings"
)

// Actions are what policies can allow, by module. Each operation of the API declares one of them.
var actions = map[string][]string{
	"knowledge":  {"SearchKnowledge"},
	"embeddings": {"CreateEmbeddings"},
	"documents": {
		"ListDocuments", "CreateDocument", "GetDocument", "UpdateDocument", "DeleteDocument", "ListDocumentVersions", "GetDocumentVersion",
	},
	"files": {"DownloadFile"},
	"memories": {
		"CreateMemoryStore", "GetMemoryStore", "ListMemoryStores", "UpdateMemoryStore", "DeleteMemoryStore",
		"CreateMemory", "GetMemory", "ListMemories", "UpdateMemory", "DeleteMemory", "RetractMemory", "ListMemoryAssertions", "ExportMemories",
	},
	"projects": {"ListProjects", "CreateProject", "GetProject", "UpdateProject", "DeleteProject"},
	"policies": {"ListPolicies", "CreatePolicy", "GetPolicy", "UpdatePolicy", "DeletePolicy"},
	"api-keys": {"ListApiKeys", "CreateApiKey", "GetApiKey", "UpdateApiKey", "DeleteApiKey"},
	"status":   {"GetStatus", "Reindex"},
}

// KnownAction says whether an operation's action is one that policies can name.
func KnownAction(action string) bool {
	module, operation, found := strings.Cut(action, ":")
	return found && slices.Contains(actions[module], operation)
}

// knownAction also takes the wildcards of policies.
func knownAction(pattern string) bool {
	if module, isModule := strings.CutSuffix(pattern, ":*"); isModule {
		return actions[module] != nil
	}
	return pattern == "*" || KnownAction(pattern)
}
