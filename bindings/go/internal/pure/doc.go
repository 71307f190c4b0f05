// Package pure is a second client of the daemon, written from abi/LAYOUT.md without libpickd and without cgo: it shows
// that the document suffices, and what libpickd through cgo costs beside it (internal/bench). It is not for users: it
// picks nothing while the daemon is away, does not connect again, and no release keeps its names. Use the package
// above it.
package pure
