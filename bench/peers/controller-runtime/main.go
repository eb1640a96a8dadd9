// The same work as every peer's: see bench/src/frameworks.rs for what the words on standard output mean.

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

type reconciler struct {
	client.Client
	// Zero where nothing is written.
	round      int64
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
	widget.Status.Round = r.round
	widget.Status.Phase = "Ready"
	if err := r.Status().Update(ctx, &widget); err != nil {
		return ctrl.Result{}, err
	}
	tell("written", r.written.Add(1))
	return ctrl.Result{}, nil
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
	config := ctrl.GetConfigOrDie()
	// No limit on this side: the servers have their own.
	config.QPS = -1
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	check(err)
	r := &reconciler{Client: manager.GetClient(), round: number("ROUND")}
	workers := controller.Options{MaxConcurrentReconciles: int(number("WORKERS"))}
	check(ctrl.NewControllerManagedBy(manager).For(&Widget{}).WithOptions(workers).Complete(r))
	check(manager.Start(ctrl.SetupSignalHandler()))
}
