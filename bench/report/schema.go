package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// SchemaJSON is the JSON Schema (draft 2020-12) of a report.
//
//go:embed report.schema.json
var SchemaJSON []byte

// schema is the part of JSON Schema that report.schema.json uses; a keyword beyond it is an error, so that none is there
// for show.
type schema struct {
	SchemaURI            string            `json:"$schema"`
	ID                   string            `json:"$id"`
	Defs                 map[string]schema `json:"$defs"`
	Ref                  string            `json:"$ref"`
	Title                string            `json:"title"`
	Description          string            `json:"description"`
	Type                 string            `json:"type"`
	Properties           map[string]schema `json:"properties"`
	Required             []string          `json:"required"`
	AdditionalProperties *schema           `json:"additionalProperties"`
	Items                *schema           `json:"items"`
	Enum                 []string          `json:"enum"`
	Const                string            `json:"const"`
	Pattern              string            `json:"pattern"`
	Minimum              *float64          `json:"minimum"`
	Maximum              *float64          `json:"maximum"`
}

var parsedSchema = sync.OnceValues(func() (*schema, error) {
	decoder := json.NewDecoder(bytes.NewReader(SchemaJSON))
	decoder.DisallowUnknownFields()
	var s schema
	if err := decoder.Decode(&s); err != nil {
		return nil, fmt.Errorf("reading the schema of reports: %w", err)
	}
	return &s, nil
})

// Validate holds a file against the schema. Its error says where in the file it does not fit.
func Validate(text []byte) error {
	root, err := parsedSchema()
	if err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	return root.validate(root, "$", value)
}

func (s *schema) validate(root *schema, at string, value any) error {
	if s.Ref != "" {
		target, ok := root.Defs[strings.TrimPrefix(s.Ref, "#/$defs/")]
		if !ok {
			return fmt.Errorf("%s: the schema has no %s", at, s.Ref)
		}
		return target.validate(root, at, value)
	}
	if is := typeOf(value); s.Type != "" && is != s.Type && !(s.Type == "number" && is == "integer") {
		return fmt.Errorf("%s is of type %s and must be %s", at, is, s.Type)
	}
	switch value := value.(type) {
	case map[string]any:
		return s.validateObject(root, at, value)
	case []any:
		for i, item := range value {
			if s.Items == nil {
				break
			}
			if err := s.Items.validate(root, fmt.Sprintf("%s[%d]", at, i), item); err != nil {
				return err
			}
		}
	case string:
		return s.validateString(at, value)
	case float64:
		if s.Minimum != nil && value < *s.Minimum || s.Maximum != nil && value > *s.Maximum {
			return fmt.Errorf("%s is %v, which is out of bounds", at, value)
		}
	}
	return nil
}

// validateObject lets fields be there that it does not know: a later tare may have written them.
func (s *schema) validateObject(root *schema, at string, object map[string]any) error {
	for _, name := range s.Required {
		if _, there := object[name]; !there {
			return fmt.Errorf("%s.%s is missing", at, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		property, known := s.Properties[name]
		if !known {
			if s.AdditionalProperties == nil {
				continue
			}
			property = *s.AdditionalProperties
		}
		if err := property.validate(root, at+"."+name, object[name]); err != nil {
			return err
		}
	}
	return nil
}

func (s *schema) validateString(at, value string) error {
	if s.Const != "" && value != s.Const {
		return fmt.Errorf("%s is %.60q and must be %q", at, value, s.Const)
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, value) {
		return fmt.Errorf("%s is %.60q and must be one of %q", at, value, s.Enum)
	}
	if s.Pattern != "" {
		if fits, err := regexp.MatchString(s.Pattern, value); err != nil || !fits {
			return fmt.Errorf("%s is %.60q and must match %s", at, value, s.Pattern)
		}
	}
	return nil
}

// typeOf is JSON Schema's name of a value's type.
func typeOf(value any) string {
	switch value := value.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		if value == float64(int64(value)) {
			return "integer"
		}
		return "number"
	}
	return "null"
}
