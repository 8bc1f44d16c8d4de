package e2e

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/controller"
)

// honest has a job of another tenant run on all GPUs, and returns what checks that it was never stopped.
func (s *siege) honest() (still func()) {
	s.create(s.job("honest", 8))
	s.first("honest")
	space := s.space
	return func() {
		s.t.Helper()
		was := s.space
		s.space = space
		if st := s.status("honest"); st.Phase != v1alpha1.Running || st.Attempt != 1 || st.Restarts != 0 {
			s.t.Errorf("a job was stopped for one that does not start: %+v", st)
		}
		s.space = was
	}
}

// urgent returns a job of the enemy that comes before those of others.
func (s *siege) urgent(name string, gpus int32, change ...func(*v1alpha1.TrainingJob)) *v1alpha1.TrainingJob {
	j := s.job(name, gpus)
	j.Namespace, j.Spec.Priority = tenant, 5
	for _, f := range change {
		f(j)
	}
	return j
}

// held waits until a job of the enemy is held, and checks that its status and an Event say why.
func (s *siege) held(name, why string) {
	s.t.Helper()
	eventually(s.t, name+" is held", func() bool { return strings.HasPrefix(s.status(name).Reason, "held: ") })
	st := s.status(name)
	c := meta.FindStatusCondition(st.Conditions, controller.IsHeld)
	if st.Phase != v1alpha1.Pending || st.Attempt != 0 || len(st.Allocation) > 0 || !strings.Contains(st.Reason, why) ||
		c == nil || c.Status != metav1.ConditionTrue || c.Message != st.Reason {
		s.t.Errorf("%s: %+v, want it held because of %q, with a condition, and without an attempt", name, st, why)
	}
	s.untilReported(name, "Warning Held")
}

// released waits until a job is held no longer.
func (s *siege) released(name string) {
	s.t.Helper()
	eventually(s.t, name+" is held no longer", func() bool {
		return !strings.HasPrefix(s.status(name).Reason, "held: ")
	})
}

// patch changes an object of the cluster's administrator.
func (s *siege) patch(o client.Object, body string) {
	s.t.Helper()
	text, err := yaml.YAMLToJSON([]byte(body))
	must(s.t, err)
	must(s.t, s.api.Patch(s.t.Context(), o, client.RawPatch(types.MergePatchType, text)))
}

// neverStart has the enemy submit jobs that come before those of others and that a quota, a rule of the namespace or
// its range of limits refuses. None may cost another job its GPUs, under a leader that comes later as well, and all may
// run once the cause is away.
func (s *siege) neverStart() {
	still := s.honest()
	lab := s.space
	s.space = tenant
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "none"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}
	s.create(quota)
	for i := range 4 {
		s.does(s.urgent(fmt.Sprint("quota-", i), 8))
	}
	for i := range 4 {
		s.held(fmt.Sprint("quota-", i), "exceeded quota: none")
	}
	s.kill()
	s.serve()
	s.create(s.urgent("later", 8))
	s.held("later", "exceeded quota: none") // the new leader has decided
	s.held("quota-3", "exceeded quota: none")
	still()
	for i := range 4 {
		s.remove(fmt.Sprint("quota-", i))
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}}
	s.patch(space, `{metadata: {labels: {pod-security.kubernetes.io/enforce: restricted}}}`)
	must(s.t, s.api.Delete(s.t.Context(), quota))
	eventually(s.t, "later is held for another reason", func() bool {
		return strings.Contains(s.status("later").Reason, "violates PodSecurity")
	})
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "small"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer,
			Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}}}}}
	s.create(limits)
	much := func(j *v1alpha1.TrainingJob) {
		j.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{
			corev1.ResourceMemory: resource.MustParse("1Gi")}
	}
	s.patch(space, `{metadata: {labels: {pod-security.kubernetes.io/enforce: null}}}`)
	s.does(s.urgent("much", 8, much))
	s.held("much", "maximum memory usage per Container is 1Mi")
	still()
	s.space = lab
	s.remove("honest")
	s.space = tenant
	s.until("later", v1alpha1.Running)
	s.remove("later")
	must(s.t, s.api.Delete(s.t.Context(), limits))
	s.released("much")
	s.first("much")
	s.remove("much")
	s.space = lab
}

// webhookAway has a webhook of the cluster not answer when a job of the enemy is asked about: until the job has run it
// is given free GPUs alone.
func (s *siege) webhookAway() {
	still := s.honest()
	lab := s.space
	s.space = tenant
	hook := s.webhook(tenant)
	defer hook.server.Close()
	s.does(s.urgent("unsure", 8))
	s.held("unsure", "away.example.com")
	still()
	hook.answer.Store(allows)
	s.space = lab
	s.remove("honest")
	s.space = tenant
	s.first("unsure")
	s.remove("unsure")
	must(s.t, s.api.Delete(s.t.Context(), hook.set))
	s.space = lab
}

// webhook is one of the cluster, which is asked about pods of one namespace.
type webhook struct {
	server *httptest.Server
	set    *admissionregistrationv1.ValidatingWebhookConfiguration
	answer atomic.Int32
}

// What a webhook may answer; at first it is away.
const (
	away int32 = iota
	allows
	refuses
)

// ServeHTTP answers the API server.
func (h *webhook) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	var review admissionv1.AdmissionReview
	answer := h.answer.Load()
	if answer == away || yaml.Unmarshal(body, &review) != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: answer == allows}
	text, _ := yaml.Marshal(&review)
	text, _ = yaml.YAMLToJSON(text)
	_, _ = w.Write(text)
}

// webhook has one be asked about the pods of a namespace.
func (s *siege) webhook(space string) *webhook {
	s.t.Helper()
	h := new(webhook)
	h.server = httptest.NewTLSServer(h)
	none, fail := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Fail
	h.set = &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "away"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "away.example.com", SideEffects: &none,
			FailurePolicy: &fail, AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: space}},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &h.server.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.server.Certificate().Raw})},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
					Resources: []string{"pods"}}}}}}}
	s.create(h.set)
	probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "probe"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}}}
	eventually(s.t, "the API server asks the webhook", func() bool {
		err := s.api.Create(s.t.Context(), probe.DeepCopy(), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "away.example.com")
	})
	return h
}

// hopelessTemplate has the enemy submit templates that no pod can be made of.
func (s *siege) hopelessTemplate() {
	still := s.honest()
	lab := s.space
	s.space = tenant
	for name, test := range map[string]struct {
		change func(p *corev1.PodSpec)
		want   string
	}{
		"twice": {func(p *corev1.PodSpec) { p.Containers = append(p.Containers, p.Containers[0]) },
			`template.spec.containers[1].name: Duplicate value: "train"`},
		"imageless": {func(p *corev1.PodSpec) { p.Containers[0].Image = "" },
			"template.spec.containers[0].image: Required value"},
		"claims": {func(p *corev1.PodSpec) {
			mine := "mine"
			p.ResourceClaims = []corev1.PodResourceClaim{{Name: "trainyard-0", ResourceClaimName: &mine}}
		}, `template.spec.resourceClaims[1].name: Duplicate value: "trainyard-0"`},
	} {
		s.does(s.urgent(name, 8, func(j *v1alpha1.TrainingJob) { test.change(&j.Spec.Template.Spec) }))
		st := s.until(name, v1alpha1.Failed)
		failed := meta.FindStatusCondition(st.Conditions, controller.HasFailed)
		if !strings.Contains(st.Reason, test.want) || failed == nil || st.Attempt != 0 {
			s.t.Errorf("%s: %+v, want %q, and no attempt", name, st, test.want)
		}
		s.untilReported(name, "Warning Invalid")
		s.remove(name)
	}
	still()
	s.space = lab
	s.remove("honest")
}
