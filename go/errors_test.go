package cuporep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// codes are all that this package has, by their names in the header where they come from there.
var codes = map[string]Code{
	"ARGUMENT": CodeArgument, "C1_FORM": CodeC1Form, "C1_SYNTAX": CodeC1Syntax, "C1_TOO_LARGE": CodeC1TooLarge,
	"PROOF_TYPE": CodeProofType, "C1_SHAPE": CodeC1Shape, "C1_ELEMENT": CodeC1Element, "C1_IDENTITY": CodeC1Identity,
	"C1_CHALLENGE": CodeC1Challenge, "C1_VANILLA": CodeC1Vanilla, "PROOF_FORM": CodeProofForm,
	"PROOF_INVALID": CodeProofInvalid, "UNSATISFIED": CodeUnsatisfied, "PROOF_BUFFER": CodeProofBuffer,
	"PARAMS_MISSING": CodeParamsMissing, "PARAMS_READ": CodeParamsRead, "PARAMS_SIZE": CodeParamsSize,
	"PARAMS_CONTENT": CodeParamsContent, "PARAMS_DIGEST": CodeParamsDigest, "PARAMS_CHANGED": CodeParamsChanged,
	"PARAMS_REFUSED": CodeParamsRefused, "MEMORY": CodeMemory, "IO": CodeIo, "DEVICE": CodeDevice,
	"DEVICE_CALL": CodeDeviceCall, "DEVICE_LOST": CodeDeviceLost, "SHUT_DOWN": CodeShutDown,
	"CANCELLED": CodeCancelled, "DEADLINE": CodeDeadline, "INTERNAL": CodeInternal, "PANIC": CodePanic,
	"SELF_CHECK": CodeSelfCheck, "TRANSFORM": CodeTransform, "TEXT_BUFFER": CodeTextBuffer,
	"closed": CodeClosed, "not linked": CodeNotLinked, "version": CodeVersion,
}

// headerNumbers reads the members of an enum of cuporep.h.
func headerNumbers(t *testing.T, prefix string) map[string]int {
	t.Helper()
	header, err := os.ReadFile("cuporep.h")
	if err != nil {
		t.Fatal(err)
	}
	numbers := make(map[string]int)
	for _, member := range regexp.MustCompile(`(?m)^ +`+prefix+`([A-Z0-9_]+) = ([0-9]+),$`).FindAllStringSubmatch(string(header), -1) {
		number, err := strconv.Atoi(member[2])
		if err != nil {
			t.Fatal(err)
		}
		numbers[member[1]] = number
	}
	return numbers
}

func TestNumbersAreThoseOfTheHeader(t *testing.T) {
	status := headerNumbers(t, "CUPOREP_STATUS_")
	delete(status, "OK")
	ours := 0
	for name, code := range codes {
		if code%100 >= 90 {
			continue
		}
		ours++
		if number, ok := status[name]; !ok || number != int(code) {
			t.Errorf("%s: %d here, %d in the header", name, code, number)
		}
	}
	if ours != len(status) {
		t.Errorf("%d codes here, %d in the header", ours, len(status))
	}

	classes := map[string]Class{
		"INPUT": ClassInput, "PARAMETERS": ClassParameters, "RESOURCE": ClassResource, "CANCELLED": ClassCancelled,
		"INTERNAL": ClassInternal,
	}
	for name, number := range headerNumbers(t, "CUPOREP_CLASS_") {
		if name != "OK" && int(classes[name]) != number {
			t.Errorf("class %s: %d here, %d in the header", name, classes[name], number)
		}
		if name != "OK" && Class(number).String() != strings.ToLower(name) {
			t.Errorf("class %s is called %v", name, Class(number))
		}
	}

	stages := headerNumbers(t, "CUPOREP_STAGE_")
	if len(stages) != len(stageNames) || stages["VERIFY"] != int(StageVerify) {
		t.Errorf("stages in the header: %v", stages)
	}
	for name, number := range stages {
		want := strings.Replace(strings.ToLower(name), "sum_b", "sum_b_g", 1)
		if Stage(number).String() != want {
			t.Errorf("stage %d: %v here, %s in the header", number, Stage(number), want)
		}
	}

	policies := map[string]Policy{
		"DEFAULT": PolicyDefault, "GPU_ONLY": PolicyGPUOnly, "PREFER_GPU": PolicyPreferGPU, "CPU": PolicyCPU,
	}
	levels := map[string]LogLevel{
		"OFF": LogOff, "ERROR": LogError, "WARN": LogWarn, "INFO": LogInfo, "DEBUG": LogDebug, "TRACE": LogTrace,
	}
	for name, number := range headerNumbers(t, "CUPOREP_POLICY_") {
		if policy, ok := policies[name]; !ok || int(policy) != number {
			t.Errorf("policy %s: %d here, %d in the header", name, policy, number)
		}
	}
	for name, number := range headerNumbers(t, "CUPOREP_LOG_LEVEL_") {
		if level, ok := levels[name]; !ok || int(level) != number {
			t.Errorf("log level %s: %d here, %d in the header", name, level, number)
		}
	}
}

func TestErrorsSurviveATransportOfText(t *testing.T) {
	for name, code := range codes {
		original := newError(code, "what is wrong with %q\nand where: [404] %d", name, code)
		// As JSON-RPC does it: the text only, in JSON, wrapped before and after.
		sent, err := json.Marshal(fmt.Errorf("computing seal proof failed: %w", original).Error())
		if err != nil {
			t.Fatal(err)
		}
		var text string
		if err := json.Unmarshal(sent, &text); err != nil {
			t.Fatal(err)
		}
		parsed, ok := ParseError(text)
		if !ok || *parsed != *original {
			t.Errorf("%q gave %v", text, parsed)
		}
		parsed, ok = FromError(errors.New(text))
		if !ok || !errors.Is(parsed, original) {
			t.Errorf("%q gave %v", text, parsed)
		}
		if found, ok := FromError(fmt.Errorf("wrapped: %w", original)); !ok || found != original {
			t.Errorf("a wrapped error gave %v", found)
		}
	}
	for _, text := range []string{
		"", "some other error", "CUPOREP_INPUT", "CUPOREP_INPUT: text", "CUPOREP_INPUT: [300] text",
		"CUPOREP_OTHER: [100] text", "CUPOREP_INPUT: [1000] text", "CUPOREP_: [100] text", "CUPOREP_INPUT: [099] text",
	} {
		if parsed, ok := ParseError(text); ok {
			t.Errorf("%q gave %v", text, parsed)
		}
	}
	if found, ok := FromError(nil); ok {
		t.Errorf("nil gave %v", found)
	}
}

func TestTextsBeginWithFixedWords(t *testing.T) {
	for code, prefix := range map[Code]string{
		CodeC1Identity:    "CUPOREP_INPUT: [107] ",
		CodeParamsMissing: "CUPOREP_PARAMETERS: [200] ",
		CodeMemory:        "CUPOREP_RESOURCE: [300] ",
		CodeDevice:        "CUPOREP_DEVICE: [302] ",
		CodeDeviceCall:    "CUPOREP_DEVICE: [303] ",
		CodeDeviceLost:    "CUPOREP_DEVICE: [304] ",
		CodeCancelled:     "CUPOREP_CANCELLED: [400] ",
		CodeDeadline:      "CUPOREP_DEADLINE: [401] ",
		CodePanic:         "CUPOREP_INTERNAL: [501] ",
	} {
		if text := newError(code, "message").Error(); text != prefix+"message" {
			t.Errorf("%d: %q", code, text)
		}
	}
}

func TestErrorsAreFoundByClass(t *testing.T) {
	classes := []error{ErrInput, ErrParameters, ErrResource, ErrCancelled, ErrInternal}
	for name, code := range codes {
		wrapped := fmt.Errorf("wrapped: %w", newError(code, "message"))
		for index, class := range classes {
			if want := int(code)/100 == index+1; errors.Is(wrapped, class) != want {
				t.Errorf("%s: errors.Is of %v is not %v", name, class, want)
			}
		}
		for other, want := range map[error]bool{
			context.Canceled:                                 code == CodeCancelled,
			context.DeadlineExceeded:                         code == CodeDeadline,
			errors.ErrUnsupported:                            code == CodeNotLinked,
			os.ErrNotExist:                                   false,
			&Error{Class: Class(code / 100), Code: code}:     true,
			&Error{Class: Class(code / 100), Code: code + 1}: false,
		} {
			if errors.Is(wrapped, other) != want {
				t.Errorf("%s: errors.Is of %v is not %v", name, other, want)
			}
		}
	}
}
