package notify

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local"
)

// send sends a notice in its way, and ends what takes longer than sendTime.
func (n *Notifier) send(l *letter) error {
	ctx, cancel := context.WithTimeout(n.ctx, n.sendTime)
	defer cancel()
	text, err := json.Marshal(&l.About)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	switch to := &l.To; {
	case to.Desktop:
		title, body := readable(&l.About)
		return program(ctx, "", session(), nil, "notify-send", "--app-name=trainyard", "--", title, body)
	case to.Mail != "":
		// It may deliver in a process that it leaves behind.
		letter := append(mail(to, &l.About), n.details(l)...)
		return ran(ctx, command(ctx, "", local.Passed(), letter, Sendmail(), "-i", "-t"))
	case to.Webhook != "":
		return post(ctx, to.Webhook, l.About.ID, text)
	case to.Run != "":
		return program(ctx, l.Dir, variables(&l.About), text, to.Run)
	}
	return program(ctx, "", variables(&l.About), text, n.o.Program)
}

// program runs a program, and ends what it leaves behind.
func program(ctx context.Context, dir string, env []string, input []byte, name string, args ...string) error {
	cmd := command(ctx, dir, env, input, name, args...)
	err := ran(ctx, cmd)
	if cmd.Process != nil {
		_ = cmd.Cancel()
	}
	return err
}

// command is a program without a shell, with what it reads. All of it ends with ctx.
func command(ctx context.Context, dir string, env []string, input []byte, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.WaitDelay = dir, env, bytes.NewReader(input), time.Second
	// no pipe: what it leaves behind may write there for as long as it lives
	if said, err := os.CreateTemp("", "trainyard-notice-"); err == nil {
		_ = os.Remove(said.Name())
		cmd.Stderr = said
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// ran runs a command. What it left behind that may write still is no error.
func ran(ctx context.Context, cmd *exec.Cmd) error {
	err := cmd.Run()
	words := lastWords(cmd)
	if err == nil || errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success() && ctx.Err() == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = errors.Join(err, ctx.Err())
	}
	if words != "" {
		return fmt.Errorf("%s: %w: %s", cmd.Args[0], err, words)
	}
	return fmt.Errorf("%s: %w", cmd.Args[0], err)
}

// Bytes of what a program wrote that are read, and that a line of it may have.
const (
	mostEnding = 4096
	mostLine   = 300
)

// lastWords closes the file to which a program wrote errors, and returns the last line with something in it, as far as
// it is text.
func lastWords(cmd *exec.Cmd) string {
	said, is := cmd.Stderr.(*os.File)
	if !is {
		return ""
	}
	defer said.Close()
	info, err := said.Stat()
	if err != nil {
		return ""
	}
	b, _ := io.ReadAll(io.NewSectionReader(said, max(0, info.Size()-mostEnding), mostEnding))
	text := strings.TrimSpace(strings.ToValidUTF8(string(b), "?"))
	text = oneLine(text[strings.LastIndexByte(text, '\n')+1:])
	if len(text) > mostLine {
		text = strings.ToValidUTF8(text[:mostLine], "") + "..."
	}
	return text
}

// variables are the environment of a program that hears of a job: what jobs inherit, and what became of it.
func variables(about *Notice) []string {
	return append(local.Passed(), "TRAINYARD_JOB_ID="+strconv.Itoa(about.Job), "TRAINYARD_JOB_NAME="+about.Name,
		"TRAINYARD_JOB_USER="+about.User,
		"TRAINYARD_OUTCOME="+about.Outcome, "TRAINYARD_EXIT_CODE="+strconv.Itoa(about.ExitCode))
}

// session is the environment of a program that shows something on the desktop.
func session() []string {
	env := local.Passed()
	for _, name := range []string{"DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// readable says a notice to people: a line, and the rest.
func readable(about *Notice) (title, body string) {
	title = fmt.Sprintf("job %d (%s) %s", about.Job, about.Name, said[about.Outcome])
	if about.Host != "" {
		title += " on " + about.Host
	}
	if about.Outcome == task.OnFailed && about.ExitCode > 0 {
		body = fmt.Sprintf("Exit code %d.\n", about.ExitCode)
	}
	if about.Text != "" {
		body += about.Text + "\n"
	}
	if len(about.Also) > 0 {
		var parts []string
		for _, word := range sortedWords(about.Also) {
			parts = append(parts, fmt.Sprintf("%d x %s", about.Also[word], word))
		}
		body += "Held back since the last notice: " + strings.Join(parts, ", ") + ".\n"
	}
	if about.Again {
		body += "This may have been sent before.\n"
	}
	return title, body
}

// said is what became of a job in words.
var said = map[string]string{task.OnFailed: "failed", task.OnFinished: "has finished",
	task.OnPreempted: "was stopped for others", task.OnTimeout: "was ended: its time was over",
	task.OnIdle: "leaves its GPUs idle"}

// mail is a notice as a mail. Nothing in it can make another header: names are of letters and digits.
func mail(to *task.Notify, about *Notice) []byte {
	title, body := readable(about)
	subject := strings.ReplaceAll(mime.QEncoding.Encode("utf-8", oneLine(title)), "\r\n", "\n")
	head := fmt.Sprintf("To: %s\nSubject: %s\nAuto-Submitted: auto-generated\nMIME-Version: 1.0\n"+
		"Content-Type: text/plain; charset=utf-8\n\n", to.Mail, subject)
	if body != "" {
		body += "\n"
	}
	return append([]byte(head), body+title+"\n"...)
}

// oneLine leaves out what would end a line.
func oneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' {
			return ' '
		}
		return c
	}, s)
}

// Sendmail is the program that sends mail.
func Sendmail() string {
	if path, err := exec.LookPath("sendmail"); err == nil {
		return path
	}
	return "/usr/sbin/sendmail"
}

// Tries of a webhook.
const (
	postTime = 8 * time.Second // that one may take
	mostHook = 4096            // bytes of the file that says where
)

// pauses are between the tries.
var pauses = []time.Duration{time.Second, 4 * time.Second}

// post sends a notice to the address in a file. Another address that is answered with is not followed.
func post(ctx context.Context, path, id string, text []byte) error {
	address, secret, err := hook(path)
	if err != nil {
		return err
	}
	c := http.Client{Timeout: postTime, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	for try := 0; ; try++ {
		again, bad := posted(ctx, &c, address, secret, id, text)
		if bad == nil || !again || try == len(pauses) {
			return unnamed(bad, path)
		}
		select {
		case <-ctx.Done():
			return errors.Join(unnamed(bad, path), ctx.Err())
		case <-time.After(pauses[try]):
		}
	}
}

// unnamed is an error without the address, which may be a secret.
func unnamed(err error, path string) error {
	var in *url.Error
	if errors.As(err, &in) {
		err = in.Err
	}
	if err != nil {
		err = fmt.Errorf("webhook of %s: %w", path, err)
	}
	return err
}

// CheckWebhook says why no notice can be sent by the file of a webhook.
func CheckWebhook(path string) error {
	_, _, err := hook(path)
	return err
}

// hook reads the address and the secret, if there is one.
func hook(path string) (address, secret string, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe that no one writes to holds nothing up
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", "", cmp.Or(err, fmt.Errorf("webhook of %s: want a file", path))
	}
	b, err := io.ReadAll(io.LimitReader(f, mostHook))
	if err != nil {
		return "", "", err
	}
	lines := strings.SplitN(string(b)+"\n", "\n", 3)
	address, secret = strings.TrimSpace(lines[0]), strings.TrimSpace(lines[1])
	u, err := url.Parse(address)
	if err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Host == "" {
		return "", "", fmt.Errorf("webhook of %s: want an address of http or https in its first line", path)
	}
	return address, secret, nil
}

// posted tries once, and reports whether it may be tried again.
func posted(ctx context.Context, c *http.Client, address, secret, id string, text []byte) (again bool, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(text))
	if err != nil {
		return false, err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("User-Agent", "trainyard")
	q.Header.Set("Trainyard-Notice", id)
	if secret != "" {
		at := strconv.FormatInt(time.Now().Unix(), 10)
		q.Header.Set("Trainyard-Time", at)
		q.Header.Set("Trainyard-Signature", "sha256="+signed(secret, at, text))
	}
	a, err := c.Do(q)
	if err != nil {
		return true, err
	}
	defer a.Body.Close()
	_, _ = io.CopyN(io.Discard, a.Body, mostHook)
	if a.StatusCode/100 != 2 {
		return a.StatusCode/100 == 5 || a.StatusCode == http.StatusTooManyRequests, fmt.Errorf("answered %s", a.Status)
	}
	return false, nil
}

// signed is the HMAC by SHA-256, in hexadecimal, of the time, a dot and the notice.
func signed(secret, at string, text []byte) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(at + "."))
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}
