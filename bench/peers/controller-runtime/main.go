// The same work as every peer's: see bench/src/frameworks.rs for the words on standard output.

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

type reconciler struct {
	client.Client
	// Zero where nothing is written.
	round int64
	// Whether a child is applied.
	hasChild   bool
	reconciled atomic.Int64
	written    atomic.Int64
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var widget Widget
	if err := r.Get(ctx, request.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.round == 0 {
		tell("reconciled", r.reconciled.Add(1))
		return ctrl.Result{}, nil
	}
	if widget.Status.Round == r.round {
		return ctrl.Result{}, nil
	}
	if r.hasChild {
		if err := r.applyChild(ctx, &widget); err != nil {
			return ctrl.Result{}, err
		}
	}
	widget.Status.Round = r.round
	widget.Status.Phase = "Ready"
	if err := r.Status().Update(ctx, &widget); err != nil {
		return ctrl.Result{}, err
	}
	tell("written", r.written.Add(1))
	return ctrl.Result{}, nil
}

// Reads a Secret and a ServiceAccount from the cache, and applies a ConfigMap of both.
func (r *reconciler) applyChild(ctx context.Context, widget *Widget) error {
	team := client.ObjectKey{Namespace: widget.Namespace, Name: widget.Labels["app.kubernetes.io/part-of"]}
	var secret corev1.Secret
	if err := r.Get(ctx, team, &secret); err != nil {
		return err
	}
	var account corev1.ServiceAccount
	if err := r.Get(ctx, team, &account); err != nil {
		return err
	}
	child := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: widget.Name},
		Data: map[string]string{
			"round":   strconv.FormatInt(r.round, 10),
			"image":   widget.Spec.Image,
			"token":   string(secret.Data["token"]),
			"contact": account.Annotations["bench.flyball.dev/contact"],
		},
	}
	if err := controllerutil.SetControllerReference(widget, child, r.Scheme()); err != nil {
		return err
	}
	return r.Patch(ctx, child, client.Apply, client.ForceOwnership, client.FieldOwner("bench"))
}

func tell(word string, count int64) {
	if count%100 == 0 {
		fmt.Println(word, count)
	}
}

func number(name string) int64 {
	value, err := strconv.ParseInt(os.Getenv(name), 10, 64)
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	ctrl.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(groupVersion, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	check(corev1.AddToScheme(scheme))
	config := ctrl.GetConfigOrDie()
	// No limit on this side: the servers have their own.
	config.QPS = -1
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	check(err)
	r := &reconciler{Client: manager.GetClient(), round: number("ROUND"), hasChild: os.Getenv("WORK") == "child"}
	workers := controller.Options{MaxConcurrentReconciles: int(number("WORKERS"))}
	builder := ctrl.NewControllerManagedBy(manager).For(&Widget{}).WithOptions(workers)
	if r.hasChild {
		builder = builder.Owns(&corev1.ConfigMap{})
	}
	check(builder.Complete(r))
	check(manager.Start(ctrl.SetupSignalHandler()))
}
