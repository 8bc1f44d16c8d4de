package task

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Notify is one way in which the user of a job hears of it. One of Desktop, Mail, Webhook and Run is set.
type Notify struct {
	On      []string `json:"on,omitempty"`      // some of NotifyOn; none = failed and finished
	Desktop bool     `json:"desktop,omitempty"` // by notify-send
	Mail    string   `json:"mail,omitempty"`    // to that address, by sendmail
	Webhook string   `json:"webhook,omitempty"` // to the address in that file, whose second line signs it
	Run     string   `json:"run,omitempty"`     // absolute path of a program that is run
}

// Alike reports whether two ways are the same, whatever is heard by them.
func (n *Notify) Alike(o *Notify) bool {
	return n.Desktop == o.Desktop && n.Mail == o.Mail && n.Webhook == o.Webhook && n.Run == o.Run
}

// What the user of a job may hear of: one whose time was over failed too.
const (
	OnFailed    = "failed"
	OnFinished  = "finished"
	OnPreempted = "preempted"
	OnTimeout   = "timeout"
	OnIdle      = "idle"
)

// NotifyOn are the words that Notify.On knows.
var NotifyOn = []string{OnFailed, OnFinished, OnPreempted, OnTimeout, OnIdle}

// MaxNotify is how many ways a job has at most.
const MaxNotify = 8

// Wants returns the first of some words that n is on, or "".
func (n *Notify) Wants(words ...string) string {
	on := n.On
	if len(on) == 0 {
		on = []string{OnFailed, OnFinished}
	}
	for _, word := range words {
		if slices.Contains(on, word) {
			return word
		}
	}
	return ""
}

// Validate returns the first thing wrong with n.
func (n *Notify) Validate() error {
	ways := 0
	for _, has := range []bool{n.Desktop, n.Mail != "", n.Webhook != "", n.Run != ""} {
		if has {
			ways++
		}
	}
	if ways != 1 {
		return fmt.Errorf("notify by %d ways, want one of desktop, mail, webhook and run each", ways)
	}
	for i, word := range n.On {
		if !slices.Contains(NotifyOn, word) || slices.Contains(n.On[:i], word) {
			return fmt.Errorf("notify on %q, want some of %s, each once", short(word), strings.Join(NotifyOn, ", "))
		}
	}
	if n.Mail != "" && !isAddress(n.Mail) {
		return fmt.Errorf("notify mail %q, want an address, as in ann@lab.example", short(n.Mail))
	}
	for key, path := range map[string]string{"webhook from_file": n.Webhook, "run": n.Run} {
		if path != "" && CheckDir(path) != nil {
			return fmt.Errorf("notify %s %q, want an absolute path, cleaned", key, short(path))
		}
	}
	return nil
}

// isAddress reports whether s is one address of mail: nothing in it means more to who sends it.
func isAddress(s string) bool {
	return len(s) <= 254 && s[0] != '-' && utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c == 0x7f || strings.ContainsRune(`,;:<>()[]"\`, c)
	})
}

// checkNotify returns what is wrong with Notify, or nil.
func (t *Task) checkNotify() error {
	if len(t.Notify) > MaxNotify {
		return fmt.Errorf("notify in %d ways, want at most %d", len(t.Notify), MaxNotify)
	}
	for i := range t.Notify {
		if err := t.Notify[i].Validate(); err != nil {
			return err
		}
	}
	return nil
}
