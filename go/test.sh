#!/usr/bin/env bash
# Tests the Go package and its example with the archive of `make go`; `make go-test` does both.
#
# Needs Go, gcc, xz and cargo, and a module proxy for the tests of the collector. Makes insecure parameters (1.1 GB) below the target directory, once; the Rust tests use
# the same.
set -euo pipefail
cd "$(dirname "$0")"
root=$(realpath ..)
test -f libcuporep.a || { echo "go/test.sh: run \`make go\` first" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The package needs no module but ours, and none of the caller's settings may change what is tested.
modules=$(go env GOPROXY)
export GOPROXY=off GOFLAGS=-mod=mod GOTOOLCHAIN=local
unset BELLMAN_NO_GPU CUPOREP_THREADS CUPOREP_MEMORY CUPOREP_GPU_WORKERS CUPOREP_CACHE_DIR FIL_PROOFS_PARAMETER_CACHE

step() { echo "== $* ($(date +%T))"; }
fail() { echo "go/test.sh: $*" >&2; exit 1; }

step parameters
target=$(cd "$root" && cargo metadata --locked --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
params=$target/tmp/parameters-1
(cd "$root" && cargo build --locked --release --bin cuporep)
tool=$target/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}release/cuporep
compgen -G "$params/*-032d3138*.params" >/dev/null ||
    "$tool" params generate --size 2KiB --insecure-seed 1 --dir "$params"
export GO_TEST_PARAMETERS=$params

step formatting and vet
unformatted=$(gofmt -l . "$root/examples/go")
[ -z "$unformatted" ] || fail "run gofmt on: $unformatted"
go vet ./...
(cd "$root/examples/go" && go vet ./...)
# The collector, a module of its own, needs client_golang.
prometheus() { (cd prometheus && GOPROXY=$modules GOFLAGS=-mod=readonly "$@"); }
prometheus go vet ./...

step without the library
CGO_ENABLED=0 go vet ./...
CGO_ENABLED=0 go test -count=1 ./...
go test -count=1 -tags cuporep_stub ./...
GOOS=darwin CGO_ENABLED=0 go build ./...
(cd "$root/examples/go" && CGO_ENABLED=0 go build -o "$work/stub" .)
code=0
"$work/stub" /dev/null 1 1000 >"$work/out" 2>"$work/err" || code=$?
[ $code = 4 ] && grep -q '^CUPOREP_RESOURCE: \[390\] ' "$work/err" || fail "the stub exits with $code: $(cat "$work/err")"

step tests
go test -count=1 -timeout 30m -v ./... >"$work/log" 2>&1 || { cat "$work/log"; fail tests; }
grep -E '^(---|ok|    [a-z_]+\.go)' "$work/log"
! grep -q -- '--- SKIP' "$work/log" || fail "a test was skipped"

step tests of the collector
prometheus go test -count=1 ./...
CGO_ENABLED=0 prometheus go test -count=1 ./...

step tests with the race detector
go test -count=1 -timeout 30m -race ./...

step tests with all pointers checked
GOEXPERIMENT=cgocheck2 go test -count=1 -timeout 30m ./...

step tests with the archive from elsewhere
mkdir "$work/lib"
cp libcuporep.a "$work/lib/"
CGO_LDFLAGS="-L$work/lib" go test -count=1 -tags cuporep_system -run 'Check|Version' ./...

step example
(cd "$root/examples/go" && go build -o "$work/prove" .)
case=$root/tests/fixtures/StackedDrg2KiBV1_1-000
sector=963860
miner=f03454089
xz -dc "$case/c1.json.xz" >"$work/c1.json"
"$work/prove" "$work/c1.json" $sector $miner "$params" >"$work/proof" 2>"$work/err" || fail "example: $(cat "$work/err")"
grep -Eqx '[0-9a-f]{384}' "$work/proof" || fail "example: $(cat "$work/proof")"
"$tool" verify --c1 "$work/c1.json" --sector $sector --miner $miner --params "$params" --proof "$work/proof"
(cd "$root" && cargo run --locked --release --example verify_public -- "$case" "$params" "$work/proof")

code=0
"$work/prove" "$work/c1.json" $sector 1 "$params" >"$work/out" 2>"$work/err" || code=$?
[ $code = 1 ] && grep -q '^CUPOREP_INPUT: \[107\] ' "$work/err" || fail "another miner: exit $code: $(cat "$work/err")"

"$work/prove" "$work/c1.json" $sector $miner "$params" >"$work/out" 2>"$work/err" &
pid=$!
for _ in $(seq 600); do
    if grep -qx transform "$work/err" || ! kill -0 $pid 2>/dev/null; then break; fi
    sleep 0.1
done
kill -INT $pid
code=0
wait $pid || code=$?
[ $code = 5 ] && [ ! -s "$work/out" ] && grep -q '^CUPOREP_CANCELLED: \[400\] ' "$work/err" ||
    fail "interrupted: exit $code: $(cat "$work/err")"
echo "== all is well ($(date +%T))"
