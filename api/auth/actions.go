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

// Kinds of resources, as policies name them.
const (
	KindDocument    = "document"
	KindMemoryStore = "memory_store"
	KindMemory      = "memory"
	KindProject     = "project"
	KindPolicy      = "policy"
	KindAPIKey      = "api-key"
)

// sight is the action, by kind, that shows a resource. Who is denied it sees the resource nowhere: in no list, search or
// total.
var sight = map[string]string{
	KindDocument:    "documents:GetDocument",
	KindMemoryStore: "memories:GetMemoryStore",
	KindMemory:      "memories:GetMemory",
	KindProject:     "projects:GetProject",
}

// KindOf gives the kind of resource that an action is about.
func KindOf(action string) string {
	module, operation, _ := strings.Cut(action, ":")
	switch module {
	case "memories":
		if strings.Contains(operation, "MemoryStore") || operation == "ExportMemories" || operation == "ListMemoryAssertions" {
			return KindMemoryStore
		}
		return KindMemory
	case "projects", "status", "embeddings":
		return KindProject
	case "policies":
		return KindPolicy
	case "api-keys":
		return KindAPIKey
	default:
		return KindDocument
	}
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
