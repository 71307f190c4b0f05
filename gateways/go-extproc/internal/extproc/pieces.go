// Keeping a body until it goes on. Knows no stream and no message.

package extproc

// pieces of a body, in order. Their memory is in proportion to the body, however small it is cut.
type pieces [][]byte

const (
	pieceSmall   = 4 << 10  // what costs too much to be kept by itself
	pieceLargest = 64 << 10 // up to which small ones are put together
)

// add keeps a piece. An empty one is kept only as the end of a body of nothing.
func (p *pieces) add(piece []byte, end bool) {
	last := len(*p) - 1
	switch {
	case last >= 0 && len(piece) == 0: // the last one carries the end
	case last >= 0 && len(piece) < pieceSmall && len((*p)[last])+len(piece) <= pieceLargest:
		(*p)[last] = append((*p)[last], piece...)
	case len(piece) > 0 || end:
		*p = append(*p, piece)
	}
}
