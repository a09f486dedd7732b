package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/kb-search/kb/api/auth"
	"github.com/kb-search/kb/db"
)

// maxPolicies bounds what one key or subject holds.
const maxPolicies = 50

func (s *Server) registerPolicies(api huma.API) {
	register(s, api, operation{
		ID: "listPolicies", Method: http.MethodGet, Path: "/api/v1/policies", Tag: "Policies", Admin: true, Global: true,
		Summary: "List policies, the oldest first", Action: "policies:ListPolicies", Errors: []int{http.StatusBadRequest},
	}, s.policyList)
	register(s, api, operation{
		ID: "createPolicy", Method: http.MethodPost, Path: "/api/v1/policies", Tag: "Policies", Status: http.StatusCreated, Admin: true, Global: true,
		Summary: "Store a policy",
		Description: "A policy is a list of statements that allow or deny actions on resources (`srn:<project>:<type>:<id or path>`, with the wildcards * and ?), " +
			"under conditions on tags. What nothing allows is denied, and a statement that denies wins.",
		Action: "policies:CreatePolicy", Errors: []int{http.StatusBadRequest, http.StatusConflict},
	}, s.policyCreate)
	register(s, api, operation{
		ID: "getPolicy", Method: http.MethodGet, Path: "/api/v1/policies/{policy_id}", Tag: "Policies", Admin: true, Global: true,
		Summary: "Get a policy", Action: "policies:GetPolicy", Errors: []int{http.StatusNotFound},
	}, s.policyGet)
	register(s, api, operation{
		ID: "updatePolicy", Method: http.MethodPut, Path: "/api/v1/policies/{policy_id}", Tag: "Policies", Admin: true, Global: true,
		Summary: "Replace a policy; it holds from the next request on", Action: "policies:UpdatePolicy",
		Errors: []int{http.StatusBadRequest, http.StatusNotFound, http.StatusConflict},
	}, s.policyUpdate)
	register(s, api, operation{
		ID: "deletePolicy", Method: http.MethodDelete, Path: "/api/v1/policies/{policy_id}", Tag: "Policies", Status: http.StatusNoContent, Admin: true, Global: true,
		Summary: "Delete a policy that no key and no subject holds", Action: "policies:DeletePolicy", Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, s.policyDelete)
	register(s, api, operation{
		ID: "getUserPolicies", Method: http.MethodGet, Path: "/api/v1/users/{subject}/policies", Tag: "Policies", Admin: true, Global: true,
		Summary: "List the policies of a token's subject", Action: "policies:ListPolicies",
	}, s.subjectGet)
	register(s, api, operation{
		ID: "putUserPolicies", Method: http.MethodPut, Path: "/api/v1/users/{subject}/policies", Tag: "Policies", Admin: true, Global: true,
		Summary: "Replace the policies of a token's subject", Action: "policies:UpdatePolicy", Errors: []int{http.StatusBadRequest},
	}, s.subjectPut)
}

type policyBody struct {
	_         struct{}        `additionalProperties:"true"`
	ID        string          `json:"id" doc:"The policy's id" example:"pol_01kb9q5s7ze4gr6tcx3k0z9ykn"`
	Name      string          `json:"name" doc:"Its name, which no other policy has"`
	Document  json.RawMessage `json:"document" doc:"Its statements"`
	CreatedAt time.Time       `json:"created_at" doc:"When it was stored"`
	UpdatedAt *time.Time      `json:"updated_at" doc:"When it was replaced; null when never"`
}

func newPolicy(row db.Policy) policyBody {
	return policyBody{ID: publicID(prefixPolicy, row.ID), Name: row.Name, Document: row.Document, CreatedAt: row.CreatedAt.UTC(), UpdatedAt: utc(row.UpdatedAt)}
}

type policyOutput struct {
	Body policyBody
}

type policyRequest struct {
	Name     string          `json:"name" doc:"The name, which no other policy has" example:"readers"`
	Document json.RawMessage `json:"document" doc:"The statements" example:"{\"statement\": [{\"effect\": \"Allow\", \"action\": [\"knowledge:SearchKnowledge\"], \"resource\": [\"srn:*:document:/manuals/*\"]}]}"`
}

// read checks a policy as it is sent.
func (r policyRequest) read() (name string, document json.RawMessage, err error) {
	if name, err = cleanName("body.name", r.Name); err != nil {
		return "", nil, err
	}
	policy, err := auth.ParsePolicy(r.Document)
	if err != nil {
		return "", nil, errInvalid("body.document", "The policy can't be stored: %v.", err)
	}
	document, err = json.Marshal(policy)
	return name, document, err
}

func (s *Server) policyList(ctx context.Context, in *OffsetInput) (*pageOutput[policyBody], error) {
	rows, err := s.queries.PolicyList(ctx, s.Conn, db.PolicyListParams{MaxResults: in.size(), Skip: int32(in.Offset)})
	if err != nil {
		return nil, fmt.Errorf("list policies: %w", err)
	}
	total, err := s.queries.PolicyCount(ctx, s.Conn)
	if err != nil {
		return nil, fmt.Errorf("count policies: %w", err)
	}
	return newPage(*in, total, rows, newPolicy), nil
}

type policyCreateInput struct {
	Body policyRequest
}

func (s *Server) policyCreate(ctx context.Context, in *policyCreateInput) (*policyOutput, error) {
	name, document, err := in.Body.read()
	if err != nil {
		return nil, err
	}
	row, err := s.queries.PolicyInsert(ctx, s.Conn, db.PolicyInsertParams{ID: db.NewID(), Name: name, Document: document})
	return answerPolicy(row, err)
}

// answerPolicy answers with a policy as it is stored now.
func answerPolicy(row db.Policy, err error) (*policyOutput, error) {
	switch db.Kind(err) {
	case db.KindConflict:
		return nil, errNameTaken("policy")
	case db.KindNotFound:
		return nil, errNotFound("policy")
	}
	if err != nil {
		return nil, fmt.Errorf("store a policy: %w", err)
	}
	return &policyOutput{Body: newPolicy(row)}, nil
}

type policyInput struct {
	PolicyID string `path:"policy_id" doc:"The policy's id"`
}

func (s *Server) policyGet(ctx context.Context, in *policyInput) (*policyOutput, error) {
	id, ok := parseID(prefixPolicy, in.PolicyID)
	if !ok {
		return nil, errNotFound("policy")
	}
	row, err := s.queries.PolicyGet(ctx, s.Conn, id)
	return answerPolicy(row, err)
}

type policyUpdateInput struct {
	PolicyID string `path:"policy_id" doc:"The policy's id"`
	Body     policyRequest
}

func (s *Server) policyUpdate(ctx context.Context, in *policyUpdateInput) (*policyOutput, error) {
	id, ok := parseID(prefixPolicy, in.PolicyID)
	if !ok {
		return nil, errNotFound("policy")
	}
	name, document, err := in.Body.read()
	if err != nil {
		return nil, err
	}
	row, err := s.queries.PolicyUpdate(ctx, s.Conn, db.PolicyUpdateParams{ID: id, Name: name, Document: document})
	return answerPolicy(row, err)
}

func (s *Server) policyDelete(ctx context.Context, in *policyInput) (*struct{}, error) {
	id, ok := parseID(prefixPolicy, in.PolicyID)
	if !ok {
		return nil, errNotFound("policy")
	}
	deleted, err := s.queries.PolicyDelete(ctx, s.Conn, id)
	switch {
	case db.Kind(err) == db.KindReference:
		return nil, &Error{
			status: http.StatusConflict, Short: "conflict", Code: "in_use", Message: "The policy is held by API keys or subjects; take it from them first.",
		}
	case err != nil:
		return nil, fmt.Errorf("delete policy %s: %w", id, err)
	case deleted == 0:
		return nil, errNotFound("policy")
	}
	return &struct{}{}, nil
}

type subjectInput struct {
	Subject string `path:"subject" maxLength:"500" doc:"The subject (sub) of a token"`
}

type policyIDs struct {
	_         struct{} `additionalProperties:"true"`
	PolicyIDs []string `json:"policy_ids" doc:"The policies' ids"`
}

type subjectOutput struct {
	Body policyIDs
}

func (s *Server) subjectGet(ctx context.Context, in *subjectInput) (*subjectOutput, error) {
	rows, err := s.queries.PolicyListOfSubject(ctx, s.Conn, in.Subject)
	if err != nil {
		return nil, fmt.Errorf("list the policies of a subject: %w", err)
	}
	out := &subjectOutput{Body: policyIDs{PolicyIDs: make([]string, len(rows))}}
	for i, row := range rows {
		out.Body.PolicyIDs[i] = publicID(prefixPolicy, row.ID)
	}
	return out, nil
}

type subjectPutInput struct {
	Subject string `path:"subject" maxLength:"500" doc:"The subject (sub) of a token"`
	Body    struct {
		PolicyIDs []string `json:"policy_ids" maxItems:"50" doc:"The policies that the subject holds from now on"`
	}
}

func (s *Server) subjectPut(ctx context.Context, in *subjectPutInput) (*subjectOutput, error) {
	ids, err := s.findPolicies(ctx, in.Body.PolicyIDs)
	if err != nil {
		return nil, err
	}
	err = db.InTx(ctx, s.Conn, func(tx pgx.Tx) error {
		if err := s.queries.PolicySubjectClear(ctx, tx, in.Subject); err != nil {
			return fmt.Errorf("take policies from a subject: %w", err)
		}
		if err := s.queries.PolicySubjectInsertMany(ctx, tx, db.PolicySubjectInsertManyParams{Subject: in.Subject, PolicyIds: ids}); err != nil {
			return fmt.Errorf("give policies to a subject: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.subjectGet(ctx, &subjectInput{Subject: in.Subject})
}

// findPolicies gives the ids of policies that are there, each once.
func (s *Server) findPolicies(ctx context.Context, public []string) ([]uuid.UUID, error) {
	unknown := &Error{
		status: http.StatusBadRequest, Short: "invalid request", Code: "policy_not_found", Field: "body.policy_ids", Message: "One of the policies is not there.",
	}
	if len(public) > maxPolicies {
		return nil, errInvalid("body.policy_ids", "There are more than %d policies.", maxPolicies)
	}
	ids := make([]uuid.UUID, 0, len(public))
	for _, text := range public {
		id, ok := parseID(prefixPolicy, text)
		if !ok {
			return nil, unknown
		}
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	ids = slices.Compact(ids)
	there, err := s.queries.PolicyCountOf(ctx, s.Conn, ids)
	if err != nil {
		return nil, fmt.Errorf("look for policies: %w", err)
	}
	if int(there) != len(ids) {
		return nil, unknown
	}
	return ids, nil
}
