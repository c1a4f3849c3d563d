package cuporep

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// Class says what to do about an error.
type Class int32

const (
	// ClassInput: the input is wrong; the same call fails again.
	ClassInput Class = 1
	// ClassParameters: proving parameters are missing, damaged or not the right ones.
	ClassParameters Class = 2
	// ClassResource: memory, disk or device; the same call may succeed later or elsewhere.
	ClassResource Class = 3
	// ClassCancelled: the context was cancelled or its deadline passed.
	ClassCancelled Class = 4
	// ClassInternal: a fault of the library.
	ClassInternal Class = 5
)

func (c Class) String() string {
	switch c {
	case ClassInput:
		return "input"
	case ClassParameters:
		return "parameters"
	case ClassResource:
		return "resource"
	case ClassCancelled:
		return "cancelled"
	case ClassInternal:
		return "internal"
	}
	return "class " + strconv.Itoa(int(c))
}

// Code is the fixed number of an error. Divided by 100 it gives the class.
type Code int32

// The numbers of `enum cuporep_status`, and three that only this package has.
const (
	CodeArgument     Code = 100 // an argument is out of range or malformed
	CodeC1Form       Code = 101 // the bytes are not a C1 output in any accepted form
	CodeC1Syntax     Code = 102 // the JSON breaks off or is malformed
	CodeC1TooLarge   Code = 103 // larger than any C1 output can be
	CodeProofType    Code = 104 // this version cannot make the proof
	CodeC1Shape      Code = 105 // a count or a length is not that of the registered proof
	CodeC1Element    Code = 106 // an element is not a canonical field element
	CodeC1Identity   Code = 107 // the C1 output belongs to another sector or miner
	CodeC1Challenge  Code = 108 // a challenge or a parent is not the right one
	CodeC1Vanilla    Code = 109 // the vanilla proof does not verify
	CodeProofForm    Code = 110 // a proof to be verified has the wrong form
	CodeProofInvalid Code = 111 // a proof to be verified is not valid
	CodeUnsatisfied  Code = 112 // the witness does not satisfy the circuit
	CodeProofBuffer  Code = 113 // the proof buffer is too small
	CodeTextBuffer   Code = 114 // the buffer for a text is too small
	CodeClosed       Code = 190 // the prover is closed

	CodeParamsMissing Code = 200 // a parameter file does not exist
	CodeParamsRead    Code = 201 // a parameter file cannot be read
	CodeParamsSize    Code = 202 // a parameter file has the wrong size
	CodeParamsContent Code = 203 // a parameter file is not what it must be
	CodeParamsDigest  Code = 204 // a parameter file has the wrong digest
	CodeParamsChanged Code = 205 // a parameter file changed while it was in use
	CodeParamsRefused Code = 206 // an operation on parameters would be unsafe

	CodeMemory     Code = 300 // the work cannot fit into memory
	CodeIo         Code = 301 // another file cannot be read or written
	CodeDevice     Code = 302 // a device does not exist or cannot be used
	CodeDeviceCall Code = 303 // a call of a device's driver failed
	CodeDeviceLost Code = 304 // a device's context is spoiled by an error; it is opened anew
	CodeShutDown   Code = 305 // the prover was shut down
	CodeNotLinked  Code = 390 // this program was built without the library

	CodeCancelled Code = 400 // the context was cancelled
	CodeDeadline  Code = 401 // the deadline passed

	CodeInternal  Code = 500 // an invariant of the library does not hold
	CodePanic     Code = 501 // a panic was caught
	CodeSelfCheck Code = 502 // a finished proof did not verify, and was withheld
	CodeTransform Code = 503 // a transform computed wrongly
	CodeVersion   Code = 590 // the archive that was linked is not of this package's version
)

// Error is what every function of this package fails with.
//
// Its text begins with a word that never changes, so that it survives a transport that carries only text, such as
// JSON-RPC: CUPOREP_INPUT, CUPOREP_PARAMETERS, CUPOREP_RESOURCE, CUPOREP_DEVICE (also of ClassResource),
// CUPOREP_CANCELLED, CUPOREP_DEADLINE (also of ClassCancelled) or CUPOREP_INTERNAL. ParseError and FromError read it back.
//
// errors.Is finds the class with ErrInput and the others like it, and context.Canceled and context.DeadlineExceeded
// with CodeCancelled and CodeDeadline.
type Error struct {
	Class Class
	Code  Code
	// Message says what is wrong, where, and what to do.
	Message string
}

// For errors.Is: an error is any of these whose class it has.
var (
	ErrInput      error = &Error{Class: ClassInput}
	ErrParameters error = &Error{Class: ClassParameters}
	ErrResource   error = &Error{Class: ClassResource}
	ErrCancelled  error = &Error{Class: ClassCancelled}
	ErrInternal   error = &Error{Class: ClassInternal}
)

func newError(code Code, format string, values ...any) *Error {
	return &Error{Class: Class(code / 100), Code: code, Message: fmt.Sprintf(format, values...)}
}

// Error gives the word, the number in brackets, and the message.
func (e *Error) Error() string {
	return fmt.Sprintf("CUPOREP_%s: [%d] %s", e.word(), e.Code, e.Message)
}

// Is reports whether target is an *Error of the same class with the same code or none, or the standard library's
// error for the same thing.
func (e *Error) Is(target error) bool {
	switch target {
	case context.Canceled:
		return e.Code == CodeCancelled
	case context.DeadlineExceeded:
		return e.Code == CodeDeadline
	case errors.ErrUnsupported:
		return e.Code == CodeNotLinked
	}
	other, ok := target.(*Error)
	return ok && other.Class == e.Class && (other.Code == 0 || other.Code == e.Code)
}

func (e *Error) word() string {
	switch {
	case e.Code == CodeDevice, e.Code == CodeDeviceCall, e.Code == CodeDeviceLost:
		return "DEVICE"
	case e.Code == CodeDeadline:
		return "DEADLINE"
	case e.Class == ClassInput:
		return "INPUT"
	case e.Class == ClassParameters:
		return "PARAMETERS"
	case e.Class == ClassResource:
		return "RESOURCE"
	case e.Class == ClassCancelled:
		return "CANCELLED"
	}
	return "INTERNAL"
}

var classes = map[string]Class{
	"INPUT":      ClassInput,
	"PARAMETERS": ClassParameters,
	"RESOURCE":   ClassResource,
	"DEVICE":     ClassResource,
	"CANCELLED":  ClassCancelled,
	"DEADLINE":   ClassCancelled,
	"INTERNAL":   ClassInternal,
}

var errorText = regexp.MustCompile(`(?s)CUPOREP_([A-Z]+): \[([0-9]{3})\] (.*)`)

// ParseError reads an error back from a text that contains one, with anything before it. What comes after it is taken
// for the end of its message.
func ParseError(text string) (*Error, bool) {
	parts := errorText.FindStringSubmatch(text)
	if parts == nil {
		return nil, false
	}
	number, err := strconv.Atoi(parts[2])
	class, known := classes[parts[1]]
	if err != nil || !known || Class(number/100) != class {
		return nil, false
	}
	return &Error{Class: class, Code: Code(number), Message: parts[3]}, true
}

// FromError finds an *Error in err: one that it wraps, else one that its text contains.
func FromError(err error) (*Error, bool) {
	if err == nil {
		return nil, false
	}
	var found *Error
	if errors.As(err, &found) {
		return found, true
	}
	return ParseError(err.Error())
}
