// Errors: libpickd's codes as Go errors. What they mean is said in pickd.h, not here.

package pickd

// #include <pickd/pickd.h>
import "C"

import (
	"context"
	"errors"
	"net/http"
	"syscall"
)

// ErrClosed is returned for what was asked of a closed [Client], or was under way when it closed.
var ErrClosed = errors.New("pickd: the client is closed")

// A Code says what kind of failure an [Error] is. It equals the errno value of libpickd, so that
// errors.Is(err, syscall.EBUSY) works too.
type Code syscall.Errno

// What pickd.h says of each value holds here.
const (
	ErrNoEndpoint   = Code(syscall.EHOSTUNREACH)    // no ready endpoint, or none that the subset allows
	ErrShed         = Code(syscall.EBUSY)           // the filters left nobody, or the pool is saturated
	ErrNotFound     = Code(syscall.ENOENT)          // no endpoint serves this model, or none has this name
	ErrInvalid      = Code(syscall.EINVAL)          // an argument is malformed
	ErrTooBig       = Code(syscall.E2BIG)           // a string or list is over its limit
	ErrExists       = Code(syscall.EEXIST)          // an endpoint of this name exists already
	ErrAccess       = Code(syscall.EACCES)          // the socket's mode does not let this user connect
	ErrPermission   = Code(syscall.EPERM)           // the daemon's configuration does not allow it
	ErrStale        = Code(syscall.ESTALE)          // the ticket is unknown, or its request has ended
	ErrTimeout      = Code(syscall.ETIMEDOUT)       // the deadline passed; also context.DeadlineExceeded
	ErrLimited      = Code(syscall.EAGAIN)          // this user is over a limit of the daemon
	ErrNotConnected = Code(syscall.ENOTCONN)        // the daemon is away, and no endpoint is known
	ErrProtocol     = Code(syscall.EPROTO)          // the daemon answered what the library cannot read
	ErrVersion      = Code(syscall.EPROTONOSUPPORT) // the daemon speaks another layout
	ErrTooMany      = Code(syscall.EMFILE)          // the daemon has all the clients that it may have
	ErrNoMemory     = Code(syscall.ENOMEM)          // out of memory
)

// Error says what the code means, in libpickd's words.
func (c Code) Error() string { return C.GoString(C.pickd_strerror(-C.int(c))) }

// Is reports whether target is the same value as a syscall.Errno, or the context's deadline error for
// [ErrTimeout].
func (c Code) Is(target error) bool {
	if errno, ok := target.(syscall.Errno); ok {
		return syscall.Errno(c) == errno
	}
	return c == ErrTimeout && target == context.DeadlineExceeded
}

// An Error is a failure that libpickd told of.
type Error struct {
	Op     string // what was being done: "pick", "open", "report", ...
	Code   Code   // what kind of failure it was
	Detail string // the library's last words on this client where it had any; may be empty
}

func (e *Error) Error() string {
	text := "pickd: " + e.Op + ": " + e.Code.Error()
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap makes errors.Is(err, ErrShed) and errors.As with a [Code] work.
func (e *Error) Unwrap() error { return e.Code }

// HTTPStatus is what a gateway answers to its client when [Client.Pick] fails with err: 503, 429, 404 or
// 400 as pickd.h has it, 504 for a deadline, 499 for a cancelled context, 503 for the rest.
// It is 200 for nil.
func HTTPStatus(err error) int {
	const clientClosedRequest = 499
	if err == nil {
		return http.StatusOK
	}
	var code Code
	if errors.As(err, &code) {
		switch code {
		case ErrShed, ErrLimited:
			return http.StatusTooManyRequests
		case ErrNotFound:
			return http.StatusNotFound
		case ErrInvalid, ErrTooBig:
			return http.StatusBadRequest
		case ErrTimeout:
			return http.StatusGatewayTimeout
		}
		return http.StatusServiceUnavailable
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	case errors.Is(err, context.Canceled):
		return clientClosedRequest
	}
	return http.StatusServiceUnavailable
}

// failure makes an error of a negative errno value; nil of anything else.
func failure(op string, code C.int) error {
	if code >= 0 {
		return nil
	}
	if code == codeClosed {
		return ErrClosed
	}
	return &Error{Op: op, Code: Code(-code)}
}
