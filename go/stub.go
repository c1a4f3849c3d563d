//go:build !cgo || !linux || cuporep_stub

package cuporep

import "context"

// native stands for the library where it is not linked.
type native struct{}

func notLinked() error {
	return newError(CodeNotLinked, "this program was built without the cuporep library: it needs Linux, CGO_ENABLED=1, "+
		"the archive from `make go`, and no build tag cuporep_stub")
}

func newNative(*Config) (*native, error) { return nil, notLinked() }
func defaultNative() (*native, error)    { return nil, notLinked() }

func (*native) free()                                                           {}
func (*native) prove(context.Context, *Request, *Report) ([]byte, error)        { return nil, notLinked() }
func (*native) check(context.Context, *Request) (*C1Info, error)                { return nil, notLinked() }
func (*native) verify(context.Context, *Request, []byte) error                  { return notLinked() }
func (*native) preload(context.Context, uint64) error                           { return notLinked() }
func (*native) evict(uint64) error                                              { return notLinked() }
func (*native) release() error                                                  { return notLinked() }
func (*native) shutdown(uint64) (bool, error)                                   { return false, notLinked() }
func (*native) metrics() (string, error)                                        { return "", notLinked() }
func nativeDevices() ([]Device, error)                                          { return nil, notLinked() }
func nativeVersion() string                                                     { return "" }
func nativeFeatures() string                                                    { return "" }
func nativeProofLen(uint64) (int, error)                                        { return 0, notLinked() }
func nativeSetLog(LogLevel, func(level LogLevel, target, message string)) error { return notLinked() }
