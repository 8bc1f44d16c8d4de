package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The bounds on sentences of the documents that users read, in words.
const (
	medianWords = 15
	longWords   = 25 // of nine sentences in ten
)

// TestSentences: in each document for users half of the sentences have at most 15 words and nine of ten at most 25.
func TestSentences(t *testing.T) {
	found := 0
	for _, d := range repository(t).docs {
		if !forUsers(d.name) {
			continue
		}
		found++
		lengths := sentenceLengths(string(d.text))
		if len(lengths) < 5 {
			t.Errorf("%s: %d sentences, want more: it is not understood", d.name, len(lengths))
			continue
		}
		median, long := lengths[len(lengths)/2], lengths[len(lengths)*9/10]
		if median > medianWords || long > longWords {
			t.Errorf("%s: sentences of %d words (median) and %d (nine of ten), want at most %d and %d", d.name, median,
				long, medianWords, longWords)
		}
	}
	if found < 8 {
		t.Errorf("%d documents, want more", found)
	}
}

func forUsers(name string) bool {
	return name == "README.md" || strings.HasPrefix(name, "docs/start/") || strings.HasPrefix(name, "docs/guide/")
}

var (
	listMark    = regexp.MustCompile(`^\s*(?:[-*]|\d+\.)\s+`)
	linkText    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	sentenceEnd = regexp.MustCompile(`[.!?]["')*]*\s+`)
	proseWord   = regexp.MustCompile(`[A-Za-z0-9][\w'’.,/%-]*`)
)

// sentenceLengths returns the words of each sentence of the prose of a document, the shortest first: less headings,
// tables and code. What stands in code marks is one word.
func sentenceLengths(text string) (lengths []int) {
	for _, paragraph := range paragraphs(text) {
		paragraph = linkText.ReplaceAllString(inlineCode.ReplaceAllString(paragraph, "X"), "$1")
		for _, s := range sentenceEnd.Split(paragraph, -1) {
			if n := len(proseWord.FindAllString(s, -1)); n > 1 {
				lengths = append(lengths, n)
			}
		}
	}
	slices.Sort(lengths)
	return lengths
}

// paragraphs returns the paragraphs and items of lists of a document, each on one line.
func paragraphs(text string) (all []string) {
	var lines []string
	end := func() {
		if len(lines) > 0 {
			all = append(all, strings.Join(lines, " "))
		}
		lines = nil
	}
	fenced := false
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(bare, "```"):
			fenced = !fenced
			end()
			continue
		case fenced:
			continue
		case bare == "", strings.HasPrefix(bare, "#"), strings.HasPrefix(bare, "|"), strings.HasPrefix(bare, "<!--"):
			end()
			continue
		case strings.HasPrefix(line, "    ") && len(lines) == 0:
			continue // code
		case listMark.MatchString(line):
			end()
			bare = listMark.ReplaceAllString(line, "")
		}
		lines = append(lines, strings.TrimSpace(bare))
	}
	end()
	return all
}

// Ensure that sentences are cut where they end, and that code, tables and headings are none.
func TestSentencesFind(t *testing.T) {
	const text = "# A heading\n\nOne two three. Four `x y z` six, seven\neight nine.\n\n| a | table |\n\n" +
		"```\nsome code. here\n```\n\n- An item of [a list](x.md).\n- Another.\n\n    indented code here\n"
	if got := fmt.Sprint(sentenceLengths(text)); got != "[3 5 6]" {
		t.Errorf("%s", got)
	}
}
