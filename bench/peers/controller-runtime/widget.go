// The kind that every peer reconciles, typed as kubebuilder would scaffold it.

package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "bench.flyball.dev", Version: "v1"}

type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WidgetSpec   `json:"spec,omitempty"`
	Status WidgetStatus `json:"status,omitempty"`
}

type WidgetSpec struct {
	Image     string            `json:"image"`
	Replicas  int32             `json:"replicas"`
	Env       []Variable        `json:"env,omitempty"`
	Ports     []Port            `json:"ports,omitempty"`
	Resources map[string]string `json:"resources,omitempty"`
	Paused    bool              `json:"paused,omitempty"`
}

type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type Port struct {
	Name   string `json:"name"`
	Number int32  `json:"number"`
}

type WidgetStatus struct {
	Round int64  `json:"round,omitempty"`
	Phase string `json:"phase,omitempty"`
}

type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Widget `json:"items"`
}

func (w *Widget) DeepCopyInto(out *Widget) {
	*out = *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Env = append([]Variable(nil), w.Spec.Env...)
	out.Spec.Ports = append([]Port(nil), w.Spec.Ports...)
	if w.Spec.Resources != nil {
		out.Spec.Resources = make(map[string]string, len(w.Spec.Resources))
		for key, value := range w.Spec.Resources {
			out.Spec.Resources[key] = value
		}
	}
}

func (w *Widget) DeepCopyObject() runtime.Object {
	out := new(Widget)
	w.DeepCopyInto(out)
	return out
}

func (l *WidgetList) DeepCopyObject() runtime.Object {
	out := new(WidgetList)
	*out = *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Widget, len(l.Items))
	for index := range l.Items {
		l.Items[index].DeepCopyInto(&out.Items[index])
	}
	return out
}
