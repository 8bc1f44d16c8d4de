package term

import (
	"strings"
	"unicode/utf8"
)

// Table is cells in columns: the first is set left, the others right, unless left or prose say otherwise. Rows may be
// shorter than others.
type Table struct {
	rows  [][]string
	Left  int  // columns set left, from the first on; 0 = one
	Prose bool // the last column is text, and set left too
}

// Add appends a row of cells.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// Text returns the table with columns as far apart as width columns allow, one to three spaces.
func (t *Table) Text(width int) string {
	widths := t.widths()
	total, gaps := 0, max(len(widths)-1, 1)
	for _, w := range widths {
		total += w
	}
	gap := min(max((width-total)/gaps, 1), 3)
	var b strings.Builder
	b.Grow(len(t.rows) * (total + gaps*gap))
	for _, row := range t.rows {
		blanks := 0 // written before the next cell that is not empty: none at the end of a line
		for i, cell := range row {
			if i > 0 {
				blanks += gap
			}
			pad := widths[i] - utf8.RuneCountInString(cell)
			left := i < max(t.Left, 1) || t.Prose && i == len(widths)-1
			if !left {
				blanks += pad
			}
			if cell != "" {
				writeBlanks(&b, blanks)
				b.WriteString(cell)
				blanks = 0
			}
			if left {
				blanks += pad
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func writeBlanks(b *strings.Builder, n int) {
	const some = "                                "
	for ; n > len(some); n -= len(some) {
		b.WriteString(some)
	}
	b.WriteString(some[:n])
}

// shortest is what cut leaves of a cell at least.
const shortest = 12

// Cut shortens the cells of a column in their middle, so that the table fits width columns if that can be.
func (t *Table) Cut(column, width int) {
	widths := t.widths()
	room := width - (len(widths) - 1)
	for i, w := range widths {
		if i != column {
			room -= w
		}
	}
	room = max(room, shortest)
	for _, row := range t.rows {
		if column >= len(row) {
			continue
		}
		if cell := []rune(row[column]); len(cell) > room {
			tail := room / 3
			row[column] = string(cell[:room-1-tail]) + "…" + string(cell[len(cell)-tail:])
		}
	}
}

// widths returns the width of each column.
func (t *Table) widths() []int {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}
