package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/kb-search/kb/api/auth"
	"github.com/kb-search/kb/db"
)

func (s *Server) registerAPIKeys(api huma.API) {
	register(s, api, operation{
		ID: "listApiKeys", Method: http.MethodGet, Path: "/api/v1/api-keys", Tag: "API keys", Admin: true,
		Summary: "List a project's API keys, the oldest first", Action: "api-keys:ListApiKeys",
	}, s.apiKeyList)
	register(s, api, operation{
		ID: "createApiKey", Method: http.MethodPost, Path: "/api/v1/api-keys", Tag: "API keys", Status: http.StatusCreated, Admin: true, ProjectInBody: true,
		Summary: "Make an API key",
		Description: "The answer shows the key, and nothing does later: the server keeps its SHA-256. The key is bound to its project. Without policies it may do " +
			"everything there but administer.",
		Action: "api-keys:CreateApiKey",
	}, s.apiKeyCreate)
	register(s, api, operation{
		ID: "getApiKey", Method: http.MethodGet, Path: "/api/v1/api-keys/{key_id}", Tag: "API keys", Admin: true,
		Summary: "Get an API key, without its secret", Action: "api-keys:GetApiKey",
	}, s.apiKeyGet)
	register(s, api, operation{
		ID: "updateApiKey", Method: http.MethodPut, Path: "/api/v1/api-keys/{key_id}", Tag: "API keys", Admin: true,
		Summary: "Change an API key's name, policies and expiry", Action: "api-keys:UpdateApiKey", Errors: []int{http.StatusConflict},
	}, s.apiKeyUpdate)
	register(s, api, operation{
		ID: "rotateApiKey", Method: http.MethodPost, Path: "/api/v1/api-keys/{key_id}/rotate", Tag: "API keys", Admin: true,
		Summary: "Give an API key another secret; the old one is refused from now on", Action: "api-keys:UpdateApiKey", Errors: []int{http.StatusConflict},
	}, s.apiKeyRotate)
	register(s, api, operation{
		ID: "revokeApiKey", Method: http.MethodDelete, Path: "/api/v1/api-keys/{key_id}", Tag: "API keys", Status: http.StatusNoContent, Admin: true,
		Summary: "Revoke an API key; it stays in the list", Action: "api-keys:DeleteApiKey",
	}, s.apiKeyRevoke)
}

// KeyBody is an API key without its secret. It is exported since huma passes over embedded structs that are not.
type KeyBody struct {
	_          struct{}   `additionalProperties:"true"`
	ID         string     `json:"id" doc:"The key's id" example:"key_01kb9q5s7ze4gr6tcx3k0z9ykn"`
	Name       string     `json:"name" doc:"Its name"`
	KeyPrefix  string     `json:"key_prefix" doc:"The beginning of the key, to tell it from others" example:"sk_4sFh2kQz"`
	ProjectID  string     `json:"project_id" doc:"The project that it is bound to"`
	PolicyIDs  []string   `json:"policy_ids" doc:"The policies that say what it may do; none for everything but to administer"`
	CreatedAt  time.Time  `json:"created_at" doc:"When it was made"`
	UpdatedAt  *time.Time `json:"updated_at" doc:"When it was changed, rotated or revoked; null when never"`
	ExpiresAt  *time.Time `json:"expires_at" doc:"When it is refused from; null for never"`
	RevokedAt  *time.Time `json:"revoked_at" doc:"When it was revoked; null when it was not"`
	LastUsedAt *time.Time `json:"last_used_at" doc:"When it was last used, to a minute; null when never"`
}

type apiKeyOutput struct {
	Body KeyBody
}

type apiKeySecretOutput struct {
	Body apiKeySecretBody
}

type apiKeySecretBody struct {
	KeyBody
	Key string `json:"key" doc:"The key itself; this is the only time that it is shown"`
}

// apiKeyBodies describes keys with their policies.
func (s *Server) apiKeyBodies(ctx context.Context, conn db.DBTX, rows ...db.ApiKey) ([]KeyBody, error) {
	ids := make([]uuid.UUID, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	held, err := s.queries.APIKeyPolicyList(ctx, conn, db.APIKeyPolicyListParams{ProjectID: projectOf(ctx), KeyIds: ids})
	if err != nil {
		return nil, fmt.Errorf("list the policies of API keys: %w", err)
	}
	policies := map[uuid.UUID][]string{}
	for _, row := range held {
		policies[row.KeyID] = append(policies[row.KeyID], publicID(prefixPolicy, row.PolicyID))
	}
	bodies := make([]KeyBody, len(rows))
	for i, row := range rows {
		bodies[i] = KeyBody{
			ID: publicID(prefixAPIKey, row.ID), Name: row.Name, KeyPrefix: row.Prefix, ProjectID: publicID(prefixProject, row.ProjectID),
			PolicyIDs: append([]string{}, policies[row.ID]...), CreatedAt: row.CreatedAt.UTC(), UpdatedAt: utc(row.UpdatedAt), ExpiresAt: utc(row.ExpiresAt),
			RevokedAt: utc(row.RevokedAt), LastUsedAt: utc(row.LastUsedAt),
		}
	}
	return bodies, nil
}

func (s *Server) apiKeyList(ctx context.Context, in *OffsetInput) (*pageOutput[KeyBody], error) {
	project := projectOf(ctx)
	rows, err := s.queries.APIKeyList(ctx, s.Conn, db.APIKeyListParams{ProjectID: project, MaxResults: in.size(), Skip: int32(in.Offset)})
	if err != nil {
		return nil, fmt.Errorf("list API keys: %w", err)
	}
	total, err := s.queries.APIKeyCount(ctx, s.Conn, project)
	if err != nil {
		return nil, fmt.Errorf("count API keys: %w", err)
	}
	bodies, err := s.apiKeyBodies(ctx, s.Conn, rows...)
	if err != nil {
		return nil, err
	}
	return newPage(*in, total, bodies, func(body KeyBody) KeyBody { return body }), nil
}

// KeyRequest is what a caller says of a key. It is exported since huma passes over embedded structs that are not.
type KeyRequest struct {
	Name      string     `json:"name" doc:"A name, to know the key by"`
	PolicyIDs []string   `json:"policy_ids,omitempty" maxItems:"50" doc:"The policies that say what it may do; none for everything in its project but to administer"`
	ExpiresAt *time.Time `json:"expires_at,omitempty" nullable:"true" doc:"When it is refused from; never when absent"`
}

type apiKeyCreateInput struct {
	Body struct {
		KeyRequest
		ProjectID string `json:"project_id,omitempty" doc:"The project, for callers who have several"`
	}
}

func (s *Server) apiKeyCreate(ctx context.Context, in *apiKeyCreateInput) (*apiKeySecretOutput, error) {
	ctx, err := s.inProject(ctx, in.Body.ProjectID)
	if err != nil {
		return nil, err
	}
	name, policies, err := s.readKey(ctx, in.Body.KeyRequest)
	if err != nil {
		return nil, err
	}
	key := auth.NewKey()
	var bodies []KeyBody
	err = db.InTx(ctx, s.Conn, func(tx pgx.Tx) error {
		row, err := s.queries.APIKeyInsert(ctx, tx, db.APIKeyInsertParams{
			ProjectID: projectOf(ctx), ID: db.NewID(), Name: name, Prefix: key.Prefix, Hash: key.Hash, ExpiresAt: in.Body.ExpiresAt,
		})
		if err != nil {
			return fmt.Errorf("insert an API key: %w", err)
		}
		bodies, err = s.givePolicies(ctx, tx, row, policies)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &apiKeySecretOutput{Body: apiKeySecretBody{KeyBody: bodies[0], Key: key.Text}}, nil
}

// readKey checks what is asked of a key.
func (s *Server) readKey(ctx context.Context, request KeyRequest) (name string, policies []uuid.UUID, err error) {
	if name, err = cleanName("body.name", request.Name); err != nil {
		return "", nil, err
	}
	if request.ExpiresAt != nil && !request.ExpiresAt.After(time.Now()) {
		return "", nil, errInvalid("body.expires_at", "The key would be expired already; name a time to come.")
	}
	policies, err = s.findPolicies(ctx, request.PolicyIDs)
	return name, policies, err
}

// givePolicies makes policies all that a key holds, and describes the key.
func (s *Server) givePolicies(ctx context.Context, tx pgx.Tx, row db.ApiKey, policies []uuid.UUID) ([]KeyBody, error) {
	if err := s.queries.APIKeyPolicyClear(ctx, tx, db.APIKeyPolicyClearParams{ProjectID: row.ProjectID, KeyID: row.ID}); err != nil {
		return nil, fmt.Errorf("take policies from API key %s: %w", row.ID, err)
	}
	if err := s.queries.APIKeyPolicyInsertMany(ctx, tx, db.APIKeyPolicyInsertManyParams{ProjectID: row.ProjectID, KeyID: row.ID, PolicyIds: policies}); err != nil {
		return nil, fmt.Errorf("give policies to API key %s: %w", row.ID, err)
	}
	return s.apiKeyBodies(ctx, tx, row)
}

type apiKeyInput struct {
	KeyID string `path:"key_id" doc:"The key's id"`
}

// findKey gives a key of the request's project, or the error that says there is none.
func (s *Server) findKey(ctx context.Context, public string) (db.ApiKey, error) {
	id, ok := parseID(prefixAPIKey, public)
	if !ok {
		return db.ApiKey{}, errNotFound("API key")
	}
	row, err := s.queries.APIKeyGet(ctx, s.Conn, db.APIKeyGetParams{ProjectID: projectOf(ctx), ID: id})
	if db.Kind(err) == db.KindNotFound {
		return db.ApiKey{}, errNotFound("API key")
	}
	if err != nil {
		return db.ApiKey{}, fmt.Errorf("get API key %s: %w", id, err)
	}
	return row, nil
}

func (s *Server) apiKeyGet(ctx context.Context, in *apiKeyInput) (*apiKeyOutput, error) {
	row, err := s.findKey(ctx, in.KeyID)
	if err != nil {
		return nil, err
	}
	bodies, err := s.apiKeyBodies(ctx, s.Conn, row)
	if err != nil {
		return nil, err
	}
	return &apiKeyOutput{Body: bodies[0]}, nil
}

type apiKeyUpdateInput struct {
	KeyID string `path:"key_id" doc:"The key's id"`
	Body  KeyRequest
}

func (s *Server) apiKeyUpdate(ctx context.Context, in *apiKeyUpdateInput) (*apiKeyOutput, error) {
	found, err := s.findKey(ctx, in.KeyID)
	if err != nil {
		return nil, err
	}
	name, policies, err := s.readKey(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	var bodies []KeyBody
	err = db.InTx(ctx, s.Conn, func(tx pgx.Tx) error {
		row, err := s.queries.APIKeyUpdate(ctx, tx, db.APIKeyUpdateParams{ProjectID: found.ProjectID, ID: found.ID, Name: name, ExpiresAt: in.Body.ExpiresAt})
		if err != nil {
			return keyError(found.ID, err)
		}
		bodies, err = s.givePolicies(ctx, tx, row, policies)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &apiKeyOutput{Body: bodies[0]}, nil
}

// keyError is the error of a change of a key that was there a moment ago.
func keyError(id uuid.UUID, err error) error {
	if db.Kind(err) == db.KindNotFound {
		return &Error{status: http.StatusConflict, Short: "conflict", Code: "key_revoked", Message: "The key is revoked; make a new one."}
	}
	return fmt.Errorf("change API key %s: %w", id, err)
}

func (s *Server) apiKeyRotate(ctx context.Context, in *apiKeyInput) (*apiKeySecretOutput, error) {
	found, err := s.findKey(ctx, in.KeyID)
	if err != nil {
		return nil, err
	}
	key := auth.NewKey()
	row, err := s.queries.APIKeyRotate(ctx, s.Conn, db.APIKeyRotateParams{ProjectID: found.ProjectID, ID: found.ID, Prefix: key.Prefix, Hash: key.Hash})
	if err != nil {
		return nil, keyError(found.ID, err)
	}
	bodies, err := s.apiKeyBodies(ctx, s.Conn, row)
	if err != nil {
		return nil, err
	}
	return &apiKeySecretOutput{Body: apiKeySecretBody{KeyBody: bodies[0], Key: key.Text}}, nil
}

func (s *Server) apiKeyRevoke(ctx context.Context, in *apiKeyInput) (*struct{}, error) {
	found, err := s.findKey(ctx, in.KeyID)
	if err != nil {
		return nil, err
	}
	if _, err := s.queries.APIKeyRevoke(ctx, s.Conn, db.APIKeyRevokeParams{ProjectID: found.ProjectID, ID: found.ID}); err != nil {
		return nil, fmt.Errorf("revoke API key %s: %w", found.ID, err)
	}
	return &struct{}{}, nil
}
