package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kb-search/kb/db/postgres"
	"github.com/kb-search/kb/embed"
)

func TestLoadConfig(t *testing.T) {
	t.Parallel()

	t.Run("EmptyEnvironmentGivesDefaults", func(t *testing.T) {
		t.Parallel()

		config, err := LoadConfig(map[string]string{"KB_CACHE_DIR": "cache"})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range []struct{ name, got, want any }{
			{"Addr", config.Addr, ":8080"},
			{"DataDir", config.DataDir, "/data"},
			{"DatabaseURL", config.DatabaseURL.Reveal(), ""},
			{"APIKey", config.APIKey.Reveal(), ""},
			{"Model", config.Model, "all-MiniLM-L6-v2"},
			{"ModelPrecision", config.ModelPrecision, embed.Int8},
			{"HubOffline", config.HubOffline, false},
			{"RerankEnabled", config.RerankEnabled, false},
			{"RerankerModel", config.RerankerModel, embed.DefaultReranker},
			{"RerankCandidates", config.RerankCandidates, 40},
			{"SearchTimeout", config.SearchTimeout, 10 * time.Second},
			{"SearchStrictMaxHits", config.SearchStrictMaxHits, int32(8)},
			{"SearchTitleBoost", config.SearchTitleBoost, 3.0},
			{"SearchRRFWindow", config.SearchRRFWindow, int32(50)},
			{"SearchVectorWeight", config.SearchVectorWeight, 0.5},
			{"SearchMaxResultWindow", config.SearchMaxResultWindow, int32(10_000)},
			{"SearchLogQueries", config.SearchLogQueries, false},
			{"SearchLogKeep", config.SearchLogKeep, 30 * 24 * time.Hour},
			{"URL", config.URL, "http://localhost:8080"},
			{"OnnxRuntime", filepath.Dir(filepath.Dir(config.OnnxRuntime)), "cache"},
		} {
			if row.got != row.want {
				t.Errorf("%s is %v, want %v", row.name, row.got, row.want)
			}
		}
		if _, err := embed.Lookup(config.Model); err != nil {
			t.Error(err)
		}
	})

	t.Run("EmptyValueMeansDefault", func(t *testing.T) {
		t.Parallel()

		config, err := LoadConfig(map[string]string{"KB_ADDR": "", "KB_WORKERS": ""})
		if err != nil {
			t.Fatal(err)
		}
		if config.Addr != ":8080" || config.Workers != 1 {
			t.Errorf("got %q and %d", config.Addr, config.Workers)
		}
	})

	t.Run("PrecisionFollowsTheServer", func(t *testing.T) {
		t.Parallel()

		for want, environment := range map[string]map[string]string{
			embed.Int8:   {},
			embed.Remote: {"KB_EMBEDDER_URL": "http://localhost"},
			embed.FP32:   {"KB_EMBEDDER_URL": "http://localhost", "KB_MODEL_PRECISION": "fp32"},
		} {
			if config, err := LoadConfig(environment); err != nil || config.ModelPrecision != want {
				t.Errorf("got %s, %v, want %s", config.ModelPrecision, err, want)
			}
		}
	})

	t.Run("SetValuesWin", func(t *testing.T) {
		t.Parallel()

		config, err := LoadConfig(map[string]string{"KB_ADDR": "127.0.0.1:9", "KB_WORKERS": "3", "KB_SEARCH_TIMEOUT": "1m", "HF_HUB_OFFLINE": "1"})
		if err != nil {
			t.Fatal(err)
		}
		if config.Addr != "127.0.0.1:9" || config.Workers != 3 || config.SearchTimeout != time.Minute || !config.HubOffline {
			t.Errorf("got %+v", config)
		}
	})

	for name, row := range map[string]struct {
		environment map[string]string
		want        []string
	}{
		"AllValuesOutOfRangeAreReportedAtOnce": {
			map[string]string{
				"KB_ADDR": "8080", "KB_MODEL_PRECISION": "int4", "KB_WORKERS": "0", "KB_SEARCH_TIMEOUT": "-1s",
				"KB_LOG_LEVEL": "loud", "KB_LOG_FORMAT": "xml", "KB_URL": "localhost",
			},
			[]string{
				`KB_ADDR is "8080"`, `KB_MODEL_PRECISION is "int4"`, "KB_WORKERS is 0", "KB_SEARCH_TIMEOUT is -1s",
				`KB_LOG_LEVEL is "loud"`, `KB_LOG_FORMAT is "xml"`, `KB_URL is "localhost"`,
			},
		},
		"AllThatIsWrongWithModelsIsReportedAtOnce": {
			map[string]string{
				"KB_MODEL_PRECISION": "remote", "KB_MODEL_DIR": "a", "KB_EMBEDDER_TIMEOUT": "0s", "KB_EMBEDDER_BATCH": "0", "KB_EMBEDDER_WINDOW": "9",
				"KB_RERANKER_DIR": "a", "KB_RERANKER_URL": "host/rerank", "KB_RERANK_CANDIDATES": "201", "KB_RERANK_TIMEOUT_MS": "0",
			},
			[]string{
				"KB_MODEL_PRECISION is remote: that needs KB_EMBEDDER_URL", "KB_MODEL_DIR is set", "KB_EMBEDDER_TIMEOUT is 0s", "KB_EMBEDDER_BATCH is 0",
				"KB_EMBEDDER_WINDOW is 9", "KB_RERANKER_URL and KB_RERANKER_DIR are both set", "KB_RERANKER_URL must begin with http",
				"KB_RERANK_CANDIDATES is 201", "KB_RERANK_TIMEOUT_MS is 0",
			},
		},
		"AddressesOfModelsAreChecked": {
			map[string]string{"KB_EMBEDDER_URL": "http://a:hush@host", "KB_RERANKER_API": "vespa"},
			[]string{"KB_EMBEDDER_URL must not hold a user name", `KB_RERANKER_API is "vespa"`},
		},
		"SearchSettingsHaveRanges": {
			map[string]string{
				"KB_SEARCH__STRICT_MAX_HITS": "0", "KB_SEARCH__TITLE_BOOST": "-1", "KB_SEARCH__RRF_WINDOW": "0", "KB_SEARCH__VECTOR_WEIGHT": "1.1",
				"KB_SEARCH__MAX_RESULT_WINDOW": "100001", "KB_SEARCH__LOG_KEEP": "0s", "KB_SEARCH__FUSION": "sum",
			},
			[]string{
				"KB_SEARCH__STRICT_MAX_HITS is 0: write a number from 1 to 10000", "KB_SEARCH__TITLE_BOOST is -1: write a number from 0 to 100",
				"KB_SEARCH__RRF_WINDOW is 0", "KB_SEARCH__VECTOR_WEIGHT is 1.1: write a number from 0 to 1", "KB_SEARCH__MAX_RESULT_WINDOW is 100001",
				"KB_SEARCH__LOG_KEEP is 0s", `KB_SEARCH__FUSION is "sum"`,
			},
		},
		"AllUnreadableValuesAreReportedAtOnce": {
			map[string]string{"KB_WORKERS": "many", "KB_SEARCH_TIMEOUT": "soon", "HF_HUB_OFFLINE": "perhaps"},
			[]string{`"many"`, `"soon"`, `"perhaps"`},
		},
		"AllUnreadableSecretFilesAreReportedAtOnce": {
			map[string]string{"KB_API_KEY_FILE": "no/such/file", "KB_DATABASE_URL_FILE": "no/such/file", "HF_TOKEN": "a", "HF_TOKEN_FILE": "b"},
			[]string{"KB_API_KEY_FILE: ", "KB_DATABASE_URL_FILE: ", "HF_TOKEN and HF_TOKEN_FILE are both set"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := LoadConfig(row.environment)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range row.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in:\n%v", want, err)
				}
			}
			if got := len(strings.Split(err.Error(), "\n")); got != len(row.want) {
				t.Errorf("%d lines, want one for each of %d problems:\n%v", got, len(row.want), err)
			}
		})
	}

	t.Run("SecretComesFromItsFile", func(t *testing.T) {
		t.Parallel()

		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(" tell-nobody\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		environment := map[string]string{"KB_API_KEY": "", "KB_API_KEY_FILE": path}
		config, err := LoadConfig(environment)
		if err != nil {
			t.Fatal(err)
		}
		if got := config.APIKey.Reveal(); got != "tell-nobody" {
			t.Errorf("got %q", got)
		}
		if environment["KB_API_KEY"] != "" {
			t.Error("the caller's map was changed")
		}
	})
}

func TestSecretNeverShows(t *testing.T) {
	t.Parallel()

	const secret = "tell-nobody"
	config, err := LoadConfig(map[string]string{"KB_API_KEY": secret, "KB_DATABASE_URL": secret, "HF_TOKEN": secret})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if got := fmt.Sprintf(format, config); strings.Contains(got, secret) || strings.Contains(got, fmt.Sprintf("%x", secret)) {
			t.Errorf("%s shows it: %s", format, got)
		}
	}
	for _, format := range []string{"text", "json"} {
		t.Run("Log"+format, func(t *testing.T) {
			t.Parallel()

			var out bytes.Buffer
			logger := newLogger(&out, Config{LogLevel: "info", LogFormat: format})
			logger.Info("loaded", slog.Any("key", config.APIKey), slog.Any("config", config), slog.Any("error", fmt.Errorf("key %v", config.APIKey)))
			if strings.Contains(out.String(), secret) {
				t.Errorf("shown in %s", out.String())
			}
		})
	}
	config.Addr = "nowhere"
	if err := config.Validate(); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v", err)
	}
}

// TestSetupBringsWhatIsUsed holds the places in the cache folder together: setup.py fills them, Go reads them.
func TestSetupBringsWhatIsUsed(t *testing.T) {
	t.Parallel()

	setup, err := os.ReadFile("../../scripts/setup.py")
	if err != nil {
		t.Fatal(err)
	}
	config, err := LoadConfig(map[string]string{"KB_CACHE_DIR": "cache"})
	if err != nil {
		t.Fatal(err)
	}
	onnxRuntime, err := filepath.Rel("cache", config.OnnxRuntime)
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{postgres.Pg0Path, filepath.ToSlash(onnxRuntime)} {
		if !strings.Contains(string(setup), `"`+place+`"`) {
			t.Errorf("scripts/setup.py does not bring %s", place)
		}
	}
}
