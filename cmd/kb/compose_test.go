package main

import (
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// root is where Dockerfile and compose.yaml lie.
const root = "../.."

type composeFile struct {
	Services map[string]struct {
		Image           string            `yaml:"image"`
		Build           string            `yaml:"build"`
		Environment     map[string]string `yaml:"environment"`
		Ports           []string          `yaml:"ports"`
		Volumes         []string          `yaml:"volumes"`
		StopGracePeriod string            `yaml:"stop_grace_period"`
		DependsOn       map[string]struct {
			Condition string `yaml:"condition"`
		} `yaml:"depends_on"`
		Healthcheck struct {
			Test []string `yaml:"test"`
		} `yaml:"healthcheck"`
	} `yaml:"services"`
	Volumes map[string]any `yaml:"volumes"`
}

func readRoot(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func readCompose(t *testing.T) composeFile {
	t.Helper()
	var compose composeFile
	if err := yaml.Unmarshal([]byte(readRoot(t, "compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	return compose
}

// dockerfile gives the instructions of a Dockerfile: the words of each, continued lines joined.
func dockerfile(t *testing.T) [][]string {
	t.Helper()
	joined := strings.ReplaceAll(readRoot(t, "Dockerfile"), "\\\n", " ")
	var instructions [][]string
	for line := range strings.Lines(joined) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			instructions = append(instructions, words)
		}
	}
	return instructions
}

func defaultPort(t *testing.T) string {
	t.Helper()
	config, err := LoadConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(config.Addr)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestContainerFiles(t *testing.T) {
	t.Parallel()

	t.Run("VariablesExist", func(t *testing.T) {
		t.Parallel()

		var known []string
		for _, field := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
			known = append(known, field.Tag.Get("env"))
			if field.Type == reflect.TypeFor[Secret]() {
				known = append(known, field.Tag.Get("env")+"_FILE")
			}
		}
		for _, name := range []string{"Dockerfile", "compose.yaml"} {
			for _, variable := range regexp.MustCompile(`\b(KB|HF|KNOWLEDGE)_[A-Z0-9_]+`).FindAllString(readRoot(t, name), -1) {
				if !slices.Contains(known, variable) {
					t.Errorf("%s names %s, Config does not know it", name, variable)
				}
			}
		}
	})

	t.Run("ImagesArePinned", func(t *testing.T) {
		t.Parallel()

		var images []string
		for name, service := range readCompose(t).Services {
			if (service.Image == "") == (service.Build == "") {
				t.Errorf("service %s needs either an image or a build", name)
			}
			if service.Image != "" {
				images = append(images, service.Image)
			}
		}
		for _, words := range dockerfile(t) {
			if words[0] == "FROM" {
				images = append(images, words[1])
			}
		}
		for _, image := range images {
			if _, tag, _ := strings.Cut(image, ":"); tag == "" || tag == "latest" {
				t.Errorf("image %s has no tag that stays", image)
			}
		}
	})

	t.Run("BuildHasTheGoOfTheModule", func(t *testing.T) {
		t.Parallel()

		version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(readRoot(t, "go.mod"))
		if image := dockerfile(t)[0][1]; version == nil || !strings.HasPrefix(image, "golang:"+version[1]+"-") {
			t.Errorf("the image is %s, go.mod says %v", image, version)
		}
	})

	t.Run("CopiedFilesExist", func(t *testing.T) {
		t.Parallel()

		for _, words := range dockerfile(t) {
			if words[0] != "COPY" || strings.HasPrefix(words[1], "--from=") {
				continue
			}
			for _, source := range words[1 : len(words)-1] {
				if _, err := os.Stat(filepath.Join(root, source)); err != nil {
					t.Error(err)
				}
				if slices.Contains(strings.Fields(readRoot(t, ".dockerignore")), source) {
					t.Errorf(".dockerignore keeps %s out", source)
				}
			}
		}
	})

	t.Run("PortsMatchTheDefaultAddress", func(t *testing.T) {
		t.Parallel()

		port := defaultPort(t)
		if got := readCompose(t).Services["kb"].Ports; !slices.Equal(got, []string{port + ":" + port}) {
			t.Errorf("compose.yaml publishes %v", got)
		}
		if !slices.ContainsFunc(dockerfile(t), func(words []string) bool { return slices.Equal(words, []string{"EXPOSE", port}) }) {
			t.Errorf("the Dockerfile does not expose %s", port)
		}
	})

	t.Run("ImageRunsCommandsThatExistAsAUser", func(t *testing.T) {
		t.Parallel()

		var user string
		for _, words := range dockerfile(t) {
			if words[0] == "USER" {
				user = words[1]
			}
		}
		if user == "" || user == "root" {
			t.Errorf("the image runs as %q", user)
		}
		for _, name := range []string{"serve", "health"} {
			if !strings.Contains(readRoot(t, "Dockerfile"), `"`+name+`"]`) {
				t.Errorf("the image does not run kb %s", name)
			}
			if !slices.ContainsFunc(commands(), func(c command) bool { return c.name == name }) {
				t.Errorf("there is no kb %s", name)
			}
		}
	})

	t.Run("ServerWaitsForTheDatabase", func(t *testing.T) {
		t.Parallel()

		compose := readCompose(t)
		kb := compose.Services["kb"]
		if kb.DependsOn["db"].Condition != "service_healthy" || len(compose.Services["db"].Healthcheck.Test) == 0 {
			t.Error("kb does not wait until db is healthy")
		}
		if !strings.HasPrefix(kb.Environment["KB_API_KEY"], "${KB_API_KEY:?") {
			t.Error("KB_API_KEY is not required")
		}
		if !slices.Contains(kb.Volumes, "data:"+kb.Environment["KB_DATA_DIR"]) {
			t.Errorf("KB_DATA_DIR is %q, the volumes are %v", kb.Environment["KB_DATA_DIR"], kb.Volumes)
		}
	})

	t.Run("ConfigurationIsAccepted", func(t *testing.T) {
		t.Parallel()

		kb := readCompose(t).Services["kb"]
		config, err := LoadConfig(kb.Environment)
		if err != nil {
			t.Fatal(err)
		}
		grace, err := time.ParseDuration(kb.StopGracePeriod)
		if err != nil || grace <= config.ShutdownTimeout {
			t.Errorf("the grace period is %q (%v), KB_SHUTDOWN_TIMEOUT %s", kb.StopGracePeriod, err, config.ShutdownTimeout)
		}
	})
}
