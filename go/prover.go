package cuporep

import (
	"context"
	"strings"
	"sync"
)

// Prover makes proofs and keeps parameters and circuits between calls.
type Prover struct {
	native *native

	lock   sync.Mutex
	calls  int
	closed bool
}

// NewProver makes a prover of its own. It starts threads and loads nothing yet. Close frees it.
func NewProver(config Config) (*Prover, error) {
	for name, text := range map[string]string{"ParameterDir": config.ParameterDir, "CacheDir": config.CacheDir} {
		if strings.ContainsRune(text, 0) {
			return nil, newError(CodeArgument, "argument %s: contains a NUL byte", name)
		}
	}
	native, err := newNative(&config)
	if err != nil {
		return nil, err
	}
	return &Prover{native: native}, nil
}

// Close frees the prover when the calls that are using it have returned; it does not wait for them. Later calls fail
// with CodeClosed.
func (p *Prover) Close() {
	p.lock.Lock()
	defer p.lock.Unlock()
	if !p.closed {
		p.closed = true
		p.freeIfUnused()
	}
}

func (p *Prover) freeIfUnused() {
	if p.closed && p.calls == 0 {
		p.native.free()
	}
}

// use runs work with the library's handle, which stays until it returns.
func (p *Prover) use(work func(*native) error) error {
	p.lock.Lock()
	if p.closed {
		p.lock.Unlock()
		return newError(CodeClosed, "the prover is closed")
	}
	p.calls++
	p.lock.Unlock()
	defer func() {
		p.lock.Lock()
		defer p.lock.Unlock()
		p.calls--
		p.freeIfUnused()
	}()
	return work(p.native)
}

// ProvePoRep makes a seal proof: checks C1 and the parameters, waits for its turn, proves every partition, verifies the
// bytes. The report is there on failure too.
//
// Cancelling the context or passing its deadline ends the call soon, with nothing left behind.
func (p *Prover) ProvePoRep(ctx context.Context, request Request) (proof []byte, report *Report, err error) {
	report = &Report{}
	err = p.use(func(n *native) error {
		proof, err = n.prove(ctx, &request, report)
		return err
	})
	return proof, report, err
}

// Check checks C1 completely: form, counts, elements, ids, challenges, every hash. It needs no parameters.
func (p *Prover) Check(ctx context.Context, request Request) (info *C1Info, err error) {
	err = p.use(func(n *native) error {
		info, err = n.check(ctx, &request)
		return err
	})
	return info, err
}

// Verify verifies the proofs of the partitions, 192 bytes each, for the ids of C1, which is checked first. Without an
// error the proof is valid; CodeProofInvalid and CodeProofForm are what a wrong one gives.
func (p *Prover) Verify(ctx context.Context, request Request, proof []byte) error {
	return p.use(func(n *native) error { return n.verify(ctx, &request, proof) })
}

// Preload opens, checks and loads the parameters of a sector size (in bytes) and loads or records its circuit, so that
// the first proof need not. It waits for its turn as a proof does.
func (p *Prover) Preload(ctx context.Context, sectorSize uint64) error {
	return p.use(func(n *native) error { return n.preload(ctx, sectorSize) })
}

// Evict forgets the parameters and the circuit of a sector size; a proof that is being made keeps them until it ends.
func (p *Prover) Evict(sectorSize uint64) error {
	return p.use(func(n *native) error { return n.evict(sectorSize) })
}

// Release gives back all memory that is kept between proofs, of devices and of the host, now: within 500 ms. A proof
// that is being made keeps what it needs until it ends. The next proof loads again.
func (p *Prover) Release() error {
	return p.use(func(n *native) error { return n.release() })
}

// process is the prover of the whole process.
var process struct {
	lock   sync.Mutex
	prover *Prover
}

// Default returns the prover that the functions of the package use, made on first use from the environment. It should
// not be closed.
func Default() (*Prover, error) {
	process.lock.Lock()
	defer process.lock.Unlock()
	if process.prover == nil {
		native, err := defaultNative()
		if err != nil {
			return nil, err
		}
		process.prover = &Prover{native: native}
	}
	return process.prover, nil
}
