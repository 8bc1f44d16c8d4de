package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Limits on the interpretation of a pickle, and so on its memory. A tensor takes about 40 operations, 6 containers and
// 9 places in the memo; its dictionary is filled in batches, so that the stack stays low.
const (
	maxOps   = 4 << 20
	maxBoxes = 1 << 20
	maxMemo  = 1 << 20
	maxStack = 1 << 16
)

// kind says what a value is.
type kind uint8

const (
	other  kind = iota // nothing is known of it but what was attached
	number             // a whole number
	text
	list   // or tuple or set
	table  // dictionary
	global // a name that is imported: text is "module name"
	storage
	array // tensor
)

// value is what a pickle's stack holds.
type value struct {
	kind kind
	n    int64
	text string
	box  *box
}

// box is what values may share.
type box struct {
	items []value // of a list; of a table key, value, key, value; of an other what was attached
	array *tensorRef
}

// tensorRef is a tensor, or a storage.
type tensorRef struct {
	key    string // of the storage
	kind   string // its type
	offset int64
	length int64 // elements of the storage
	n      int64 // elements of the tensor
}

// machine interprets a pickle.
type machine struct {
	in      []byte
	at      int
	stack   []value
	marks   []int // heights of the stack
	memo    map[uint64]value
	boxes   int
	strange error
}

// Operations, of all protocols but the text ones of protocol 0, which torch does not write.
const (
	opMark            = '('
	opStop            = '.'
	opPop             = '0'
	opPopMark         = '1'
	opDup             = '2'
	opFloat           = 'G'
	opInt4            = 'J'
	opInt1            = 'K'
	opInt2            = 'M'
	opNone            = 'N'
	opPersistent      = 'Q'
	opReduce          = 'R'
	opBinString       = 'T'
	opShortBinString  = 'U'
	opUnicode         = 'X'
	opAppend          = 'a'
	opBuild           = 'b'
	opGlobal          = 'c'
	opDict            = 'd'
	opEmptyDict       = '}'
	opAppends         = 'e'
	opGet1            = 'h'
	opGet4            = 'j'
	opList            = 'l'
	opEmptyList       = ']'
	opPut1            = 'q'
	opPut4            = 'r'
	opSetItem         = 's'
	opTuple           = 't'
	opEmptyTuple      = ')'
	opSetItems        = 'u'
	opProto           = 0x80
	opNewObject       = 0x81
	opTuple1          = 0x85
	opTuple2          = 0x86
	opTuple3          = 0x87
	opTrue            = 0x88
	opFalse           = 0x89
	opLong1           = 0x8a
	opLong4           = 0x8b
	opShortUnicode    = 0x8c
	opUnicode8        = 0x8d
	opBytes8          = 0x8e
	opBytes           = 'B'
	opShortBytes      = 'C'
	opEmptySet        = 0x8f
	opAddItems        = 0x90
	opFrozenSet       = 0x91
	opNewObjectKeys   = 0x92
	opStackGlobal     = 0x93
	opMemoize         = 0x94
	opFrame           = 0x95
	opByteArray8      = 0x96
	highestProtocol   = 5
	longestWholeBytes = 8
)

// errUnderflow is of an operation that finds less on the stack than it takes.
var errUnderflow = errors.New("less on the stack than it takes")

// unpickle interprets a pickle and returns what it makes. Nothing is imported and nothing is called.
//
// Source: the opcodes as Python's pickletools documents them.
func unpickle(in []byte) (value, error) {
	m := &machine{in: in, memo: make(map[uint64]value)}
	for range maxOps {
		op, err := m.byte()
		at := m.at - 1
		if err == nil && op == opStop {
			if len(m.stack) == 0 {
				return value{}, fmt.Errorf("pickle: byte %d: nothing made, want an object", at)
			}
			return m.pop(), nil
		}
		if err == nil {
			err = m.do(op)
		}
		if err == nil {
			err = m.strange
		}
		if err != nil {
			return value{}, fmt.Errorf("pickle: byte %d, operation %#02x: %w", at, op, err)
		}
	}
	return value{}, fmt.Errorf("pickle: byte %d: no end after %d operations, want one", m.at, maxOps)
}

// do carries out one operation.
func (m *machine) do(op byte) error {
	switch {
	case m.literal(op), m.container(op), m.remember(op), m.object(op):
		return nil
	}
	switch op {
	case opProto:
		if v := m.take(1); len(v) == 1 && v[0] > highestProtocol {
			return fmt.Errorf("protocol %d, want at most %d", v[0], highestProtocol)
		}
	case opFrame:
		m.take(8)
	case opMark:
		if m.marks = append(m.marks, len(m.stack)); len(m.marks) > maxStack {
			return fmt.Errorf("more than %d marks, want fewer", maxStack)
		}
	case opPop:
		m.pop()
	case opPopMark:
		m.popMark()
	case opDup:
		v := m.pop()
		m.push(v)
		m.push(v)
	default:
		return errors.New("not known, want what torch.save writes")
	}
	return nil
}

// literal carries out an operation that pushes what stands in the pickle.
func (m *machine) literal(op byte) bool {
	switch op {
	case opNone, opTrue, opFalse:
		m.push(value{})
	case opInt1:
		m.push(value{kind: number, n: int64(m.whole(1))})
	case opInt2:
		m.push(value{kind: number, n: int64(m.whole(2))})
	case opInt4:
		m.push(value{kind: number, n: int64(int32(m.whole(4)))})
	case opLong1:
		m.long(m.take(m.whole(1)))
	case opLong4:
		m.long(m.take(m.whole(4)))
	case opFloat:
		m.take(8)
		m.push(value{})
	case opShortUnicode, opShortBinString:
		m.push(value{kind: text, text: string(m.take(m.whole(1)))})
	case opUnicode, opBinString:
		m.push(value{kind: text, text: string(m.take(m.whole(4)))})
	case opUnicode8:
		m.push(value{kind: text, text: string(m.take(m.whole(8)))})
	case opShortBytes:
		m.take(m.whole(1))
		m.push(value{})
	case opBytes:
		m.take(m.whole(4))
		m.push(value{})
	case opBytes8, opByteArray8:
		m.take(m.whole(8))
		m.push(value{})
	default:
		return false
	}
	return true
}

// long pushes a whole number in two's complement, lowest byte first; a longer one than ours is something else.
func (m *machine) long(b []byte) {
	if len(b) > longestWholeBytes {
		m.push(value{})
		return
	}
	n := int64(0)
	for i, c := range b {
		n |= int64(c) << (8 * i)
	}
	if k := len(b); k > 0 && k < longestWholeBytes && b[k-1] >= 0x80 {
		n -= 1 << (8 * k)
	}
	m.push(value{kind: number, n: n})
}

// container carries out an operation on lists, tuples, sets and dictionaries.
func (m *machine) container(op byte) bool {
	switch op {
	case opEmptyList, opEmptyTuple, opEmptySet:
		m.make(list, nil)
	case opEmptyDict:
		m.make(table, nil)
	case opTuple, opList, opFrozenSet:
		m.make(list, m.popMark())
	case opDict:
		m.make(table, m.popMark())
	case opTuple1:
		m.make(list, m.popN(1))
	case opTuple2:
		m.make(list, m.popN(2))
	case opTuple3:
		m.make(list, m.popN(3))
	case opAppend:
		m.extend(m.popN(1))
	case opSetItem:
		m.extend(m.popN(2))
	case opAppends, opSetItems, opAddItems:
		m.extend(m.popMark())
	default:
		return false
	}
	return true
}

// remember carries out an operation on the memo.
func (m *machine) remember(op byte) bool {
	switch op {
	case opPut1:
		m.put(uint64(m.whole(1)))
	case opPut4:
		m.put(uint64(m.whole(4)))
	case opMemoize:
		m.put(uint64(len(m.memo)))
	case opGet1:
		m.get(uint64(m.whole(1)))
	case opGet4:
		m.get(uint64(m.whole(4)))
	default:
		return false
	}
	return true
}

func (m *machine) put(i uint64) {
	if len(m.memo) == maxMemo {
		m.fail(fmt.Errorf("more than %d values are remembered, want fewer", maxMemo))
		return
	}
	m.memo[i] = m.top()
}

func (m *machine) get(i uint64) {
	v, ok := m.memo[i]
	if !ok {
		m.fail(fmt.Errorf("value %d was not remembered, want one that was", i))
	}
	m.push(v)
}

// object carries out an operation that would import, call or make something.
func (m *machine) object(op byte) bool {
	switch op {
	case opGlobal:
		module, name := m.line(), m.line()
		m.push(value{kind: global, text: module + " " + name})
	case opStackGlobal:
		v := m.popN(2)
		if len(v) == 2 {
			m.push(value{kind: global, text: v[0].text + " " + v[1].text})
		}
	case opReduce, opNewObject:
		if v := m.popN(2); len(v) == 2 {
			m.call(v[0], v[1].list())
		}
	case opNewObjectKeys:
		if v := m.popN(3); len(v) == 3 {
			m.call(v[0], v[1].list())
		}
	case opBuild:
		state, to := m.pop(), m.top()
		if to.kind == other && to.box != nil { // the state of a dictionary holds no tensors
			to.box.items = append(to.box.items, state)
		}
	case opPersistent:
		m.persistent(m.pop().list())
	default:
		return false
	}
	return true
}

// list returns the items of a list or tuple, nil of anything else.
func (v value) list() []value {
	if v.kind != list {
		return nil
	}
	return v.box.items
}

// make pushes a new container. The items become its own.
func (m *machine) make(k kind, items []value) {
	if m.boxes++; m.boxes > maxBoxes {
		m.fail(fmt.Errorf("more than %d containers, want fewer", maxBoxes))
		return
	}
	m.push(value{kind: k, box: &box{items: items}})
}

// extend adds items to the container on the stack. What else is there ignores them.
func (m *machine) extend(items []value) {
	if to := m.top(); to.box != nil && (to.kind == list || to.kind == table) {
		to.box.items = append(to.box.items, items...)
	}
}

func (m *machine) push(v value) {
	if len(m.stack) == maxStack {
		m.fail(fmt.Errorf("more than %d values on the stack, want fewer", maxStack))
		return
	}
	m.stack = append(m.stack, v)
}

func (m *machine) fail(err error) {
	if m.strange == nil {
		m.strange = err
	}
}

// floor is the height of the stack that belongs to the mark.
func (m *machine) floor() int {
	if len(m.marks) == 0 {
		return 0
	}
	return m.marks[len(m.marks)-1]
}

func (m *machine) top() value {
	if len(m.stack) <= m.floor() {
		m.fail(errUnderflow)
		return value{}
	}
	return m.stack[len(m.stack)-1]
}

func (m *machine) pop() value {
	v := m.top()
	m.stack = m.stack[:max(len(m.stack)-1, m.floor())]
	return v
}

// popN takes n values off the stack, in the order in which they were pushed.
func (m *machine) popN(n int) []value {
	at := len(m.stack) - n
	if at < m.floor() {
		m.fail(errUnderflow)
		return nil
	}
	return m.popFrom(at)
}

func (m *machine) popFrom(at int) []value {
	items := append([]value(nil), m.stack[at:]...)
	m.stack = m.stack[:at]
	return items
}

// popMark takes what was pushed since the mark.
func (m *machine) popMark() []value {
	if len(m.marks) == 0 {
		m.fail(errors.New("no mark, want one"))
		return nil
	}
	at := m.floor()
	m.marks = m.marks[:len(m.marks)-1]
	return m.popFrom(at)
}

func (m *machine) byte() (byte, error) {
	if m.at == len(m.in) {
		return 0, io.ErrUnexpectedEOF
	}
	m.at++
	return m.in[m.at-1], nil
}

// take takes n bytes.
func (m *machine) take(n int) []byte {
	if n < 0 || n > len(m.in)-m.at {
		m.fail(io.ErrUnexpectedEOF)
		return nil
	}
	m.at += n
	return m.in[m.at-n : m.at]
}

// whole takes a number of n bytes, lowest first.
func (m *machine) whole(n int) int {
	var b [8]byte
	copy(b[:], m.take(n))
	return int(min(binary.LittleEndian.Uint64(b[:]), math.MaxInt))
}

// line takes a line.
func (m *machine) line() string {
	for i := m.at; i < len(m.in); i++ {
		if m.in[i] == '\n' {
			s := string(m.in[m.at:i])
			m.at = i + 1
			return s
		}
	}
	m.fail(io.ErrUnexpectedEOF)
	return ""
}
