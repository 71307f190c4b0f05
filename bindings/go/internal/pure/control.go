// The control socket: a question, its answer, and the descriptors that come with it.

package pure

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

const (
	packetBytesMax = 64 << 10
	descriptorsMax = 4
)

type control struct {
	connection *net.UnixConn
	last       uint32 // number of the newest question
}

func dial(path string) (*control, error) {
	connection, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, err
	}
	return &control{connection: connection}, nil
}

// ask sends a message and returns its answer, which must be of that kind and bring so many descriptors.
func (c *control) ask(kind byte, wanted byte, descriptors int, fields ...field) (table, []int, error) {
	c.last++
	if _, err := c.connection.Write(message(c.last, kind, fields...)); err != nil {
		return table{}, nil, err
	}
	packet := make([]byte, packetBytesMax)
	ancillary := make([]byte, syscall.CmsgSpace(4*descriptorsMax))
	size, ancillarySize, _, _, err := c.connection.ReadMsgUnix(packet, ancillary)
	if err != nil {
		return table{}, nil, err
	}
	came, err := descriptorsOf(ancillary[:ancillarySize])
	if err != nil {
		return table{}, nil, err
	}
	answered, what, body, err := parse(packet[:size])
	switch {
	case err != nil:
	case what == bodyOutcome:
		err = fmt.Errorf("%s: %w", body.text(1), syscall.Errno(-int32(body.number(0, 4))))
	case answered != c.last || what != wanted || len(came) != descriptors:
		err = syscall.EPROTO
	default:
		return body, came, nil
	}
	closeAll(came)
	return table{}, nil, err
}

func descriptorsOf(ancillary []byte) ([]int, error) {
	messages, err := syscall.ParseSocketControlMessage(ancillary)
	if err != nil {
		return nil, err
	}
	var all []int
	for at := range messages {
		rights, err := syscall.ParseUnixRights(&messages[at])
		if err != nil && !errors.Is(err, syscall.EINVAL) {
			closeAll(all)
			return nil, err
		}
		all = append(all, rights...)
	}
	for _, fd := range all {
		syscall.CloseOnExec(fd)
	}
	return all, nil
}

func closeAll(descriptors []int) {
	for _, fd := range descriptors {
		syscall.Close(fd)
	}
}

// leave tells the daemon that this is no death.
func (c *control) leave() {
	c.last++
	_, _ = c.connection.Write(message(c.last, bodyGoodbye))
	c.connection.Close()
}
