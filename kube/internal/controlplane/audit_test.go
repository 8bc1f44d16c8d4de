package controlplane

import (
	"os"
	"testing"
	"time"
)

// Ensure that a line of the audit log that is being written is waited for.
func TestRequestsWaitForTheirLine(t *testing.T) {
	c := &Cluster{dir: t.TempDir(), options: Options{Audit: true}}
	if err := os.WriteFile(c.path("audit.log"), []byte(`{"verb":"get"}`+"\n"+`{"verb":"pa`), 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		time.Sleep(20 * time.Millisecond)
		file, err := os.OpenFile(c.path("audit.log"), os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = file.WriteString(`tch"}` + "\n")
			file.Close()
		}
		ended <- err
	}()
	got := c.Requests(t)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Verb != "get" || got[1].Verb != "patch" {
		t.Errorf("%+v", got)
	}
}
